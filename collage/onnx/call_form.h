#pragma once

#include "collage/ir/expr.h"
#include "collage/support/result.h"

namespace collage {

/// The call of an operator alone as an ONNX model, for graph compilers that want to know whether they take it. Large constants are inputs
/// of the model: the form does not depend on them, and copying weights is slow; small ones stay, because scalars and axes must be constants
/// in ONNX. Errors say why the call has no ONNX form.
Result<std::string> WriteOnnxCall(const Call& call);

}  // namespace collage
