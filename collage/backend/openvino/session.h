#pragma once

#include <memory>
#include <string>

#include "collage/onnx/original.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"
#include "collage/support/result.h"

namespace collage::openvino {

/// The version of OpenVINO with which this process runs, or why its CPU plugin cannot be used.
Result<std::string> RuntimeVersion();

/// Compiles an ONNX model for the CPU plugin: float32 arithmetic throughout, one stream, `device.threads` threads, all tensors row-major.
/// Errors are OpenVINO's own words; no exception leaves.
Result<std::unique_ptr<Kernel>> CompileModel(const OnnxForm& form, const Device& device);

}  // namespace collage::openvino
