#pragma once

#include <functional>
#include <memory>
#include <string>

#include "collage/onnx/original.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"
#include "collage/support/result.h"

namespace collage::openvino {

/// The version of OpenVINO with which this process runs, or why its CPU plugin cannot be used.
Result<std::string> RuntimeVersion();

/// Whether this processor multiplies numbers of bfloat16. Where it does not, the plugin would compute in float32 whatever it is told.
bool HasBFloat16();

/// In which the plugin computes with numbers of float32.
enum class Arithmetic { kFloat32, kBFloat16 };

/// Compiles an ONNX model for the CPU plugin: one stream, `device.threads` threads, all tensors row-major.
/// Large weights stay where they are, unless a translator asks for their values. Errors are OpenVINO's own words; no exception leaves.
Result<std::unique_ptr<Kernel>> CompileModel(const std::function<Result<OnnxForm>(LargeWeightsAs)>& write, const Device& device,
                                             Arithmetic arithmetic);

}  // namespace collage::openvino
