#pragma once

// A function may carry the ONNX model that it came from. All it does then is to call a function literal with the attribute "OnnxModel":
//
//   fn (%p0, Primitive=1, Compiler="openvino") {
//     fn (%x, %w, OnnxModel="CAgSAA..") { nn.relu(nn.conv2d(%x, meta[relay.Constant][0])) }(%p0, meta[relay.Constant][0])
//   }
//
// The attribute is the model without its weights (onnx/original.h). The literal's parameters are what the graph of that model lists as
// inputs: the model's own, then what were its initializers, which the call binds to constants. The body computes the same by operators of
// ours. So whoever knows functions runs, compares, saves and sends one that carries a model, and weights count in hashes as ever.

#include <string_view>

#include "collage/ir/expr.h"

namespace collage {

inline constexpr std::string_view kOnnxModelAttribute = "OnnxModel";

/// The call of the literal that carries the model; null where the function carries none. Lives as long as the function.
const Call* CallOfOriginal(const Function& function);

}  // namespace collage
