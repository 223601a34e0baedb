#pragma once

#include "collage/ir/expr.h"
#include "collage/pattern/rule.h"

namespace collage::onnxruntime {

/// May this call of an operator be part of a region: it has an ONNX form, and the library has kernels for it. Which it has depends on
/// operator and types, so a session of the call alone is tried; what was asked once is remembered.
Verdict Supports(const Expr& call);

}  // namespace collage::onnxruntime
