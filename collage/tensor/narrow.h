#pragma once

#include "collage/tensor/tensor.h"

namespace collage {

// Element types that C++ has no type for: floating point of 16 bits and less, integers of less than 8 bits. They are stored and
// moved as they are, and computed with in a wider type that holds each of their values exactly.

/// float32 for narrow floating point, int8 and uint8 for narrow integers; all other types are their own.
DType WideType(DType dtype);
bool IsNarrow(DType dtype);
bool IsSixteenBitFloat(DType dtype);

/// The elements in the wide type; the tensor itself where its type is not narrow.
Tensor Widened(const Tensor& tensor);
/// Rounds elements of the wide type to those of `result`, a narrow tensor of the same shape: floating point to the nearest, ties to
/// even, integers to their low bits. `saturate`: of formats of 8 bits and less, what is too large becomes the largest number,
/// otherwise an infinity or NaN.
void Narrow(const Tensor& wide, Tensor& result, bool saturate = true);

/// The least and the greatest number of an integer type, bool included.
struct IntegerLimits {
  int64_t low;
  uint64_t high;
};
IntegerLimits LimitsOfInteger(DType dtype);
/// The greatest finite number of a floating point type.
double GreatestFinite(DType dtype);

/// A one-element tensor without dimensions; Tensor::Scalar for every dtype.
Tensor ScalarOf(double value, DType dtype);

}  // namespace collage
