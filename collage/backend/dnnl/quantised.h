#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collage/ir/op_sequence.h"

namespace collage::dnnl_backend {

struct Chain;

/// How one end of a chain is kept as integers: the number that one stands for is scale * (integer - zero_point).
struct Stored {
  size_t value = 0;  ///< index into the sequence's values
  DType dtype = DType::kFloat32;
  double scale = 1;
  int32_t zero_point = 0;
};

/// A chain of numbers whose product the library computes of integers of 8 bits: exact sums in 32 bits, made numbers, to which the
/// post-operations apply.
struct QuantisedEnds {
  Stored data;
  std::optional<Stored> right;       ///< the other matrix, where that is computed, too; then sums have one scale
  bool makes_right_signed = false;   ///< of unsigned bytes; `right` tells of what they are less 128, which the library takes
  Stored result;                     ///< float32 where the chain's numbers are stored as they are
  size_t weight_axis = 0;            ///< along which the channels of the weights lie
  std::vector<float> sum_scales;     ///< what a sum is worth, one a channel
  std::vector<float> output_scales;  ///< the same, times what the chain multiplies its channels by at once
};

/// True for what ParseQuantised is about: the first operator makes numbers of integers of 8 bits.
bool IsQuantised(const OpSequence& sequence);

/// The operators between the ends as a chain of float32 over `inside`, whose values have the numbers of `sequence`. Errors on anything
/// else than a product with constant weights that are multiples of steps (QuantiseExactly), or of two computed matrices, and where this
/// processor's integers overflow.
Result<Chain> ParseQuantised(const OpSequence& sequence, OpSequence& inside);

/// Weights as the library takes them: whole numbers.
Tensor WholeWeights(const Tensor& weights, size_t axis);
/// A bias as the library adds it to the sums: in units of what they are worth.
Tensor BiasOfSums(const Tensor& bias, const std::vector<float>& sum_scales);

}  // namespace collage::dnnl_backend
