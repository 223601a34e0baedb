#pragma once

#include "collage/tensor/tensor.h"

namespace collage {

// Tensors of float16 and bfloat16: stored and moved as they are, and computed with in float32.

bool IsSixteenBitFloat(DType dtype);

/// The elements of a 16-bit floating point tensor as float32, which holds each of them exactly.
Tensor Widened(const Tensor& tensor);
/// Rounds float32 elements to those of `result`, a 16-bit floating point tensor of the same shape; ties to even.
void Narrow(const Tensor& wide, Tensor& result);

/// A one-element tensor without dimensions; Tensor::Scalar for every dtype.
Tensor ScalarOf(double value, DType dtype);

}  // namespace collage
