#pragma once

#include "collage/ir/expr.h"

namespace collage::openvino {

/// The function, in which something is quantised, with the weights of its products as the integers that they are multiples of
/// (QuantiseExactly) and an operator that dequantises them: by that its compiler knows a product of integers. Other functions stay as they
/// are; so do all on a processor whose products of bytes saturate, where the compiler then multiplies in float32.
Result<Expr> WithIntegerWeights(const Function& function);

}  // namespace collage::openvino
