#pragma once

#include <memory>
#include <string>

#include "collage/onnx/original.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"
#include "collage/support/result.h"

namespace collage::onnxruntime {

/// Makes a session of an ONNX model: `device.threads` threads of its own, which stop spinning when a run ends, so that they leave the
/// processors to whatever runs next. The form's weights are given to it beside the model, and kept. All tensors are row-major, read and
/// written where the caller has them. Errors are the library's words.
///
/// With kQuantised its optimizer makes integer kernels of operators between dequantised and quantised tensors. Where weights are floats it
/// rounds these to 8 bits too, so that is only for models whose weights are quantised themselves.
enum class Arithmetic { kAsWritten, kQuantised };
Result<std::unique_ptr<Kernel>> MakeSession(const OnnxForm& form, const Device& device, Arithmetic arithmetic);

/// Whether the library has kernels for all of a model, given as bytes. Errors say for what it has none.
Status HasKernelsFor(const std::string& onnx_model);

}  // namespace collage::onnxruntime
