#pragma once

#include "collage/ir/expr.h"
#include "collage/pattern/rule.h"

namespace collage::openvino {

/// May this call of an operator be part of a region: it has an ONNX form, and the CPU plugin runs that form with the result
/// that the operator defines.
Verdict Supports(const Expr& call);

}  // namespace collage::openvino
