#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"
#include "collage/support/result.h"

namespace collage::openvino {

/// The version of OpenVINO with which this process runs, or why its CPU plugin cannot be used.
Result<std::string> RuntimeVersion();

/// Compiles an ONNX model given as bytes for the CPU plugin: float32 arithmetic throughout, one stream, `device.threads`
/// threads. The model's inputs are p0, p1, ... of the given types, its outputs r0, r1, ..., all row-major and of static shape.
/// Errors are OpenVINO's own words; no exception leaves.
Result<std::unique_ptr<Kernel>> CompileModel(const std::string& onnx_model, const std::vector<TensorType>& inputs,
                                             const std::vector<TensorType>& outputs, const Device& device);

}  // namespace collage::openvino
