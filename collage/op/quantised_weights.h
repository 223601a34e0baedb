#pragma once

#include <optional>
#include <vector>

#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// Weights as whole numbers of 8 bits, each times the scale of its channel.
struct QuantisedWeights {
  Tensor values;              ///< int8, of the shape of the weights
  std::vector<float> scales;  ///< one a channel, positive
};

/// What a model keeps in 8 bits and dequantises is folded to numbers, so that every library may compute with it; a library of integers
/// finds it again here: the elements of a channel are multiples of one scale by whole numbers in [-128, 127], but for the rounding of
/// float32. Channels lie along dimension `axis`. Nothing where some channel is no such thing.
std::optional<QuantisedWeights> QuantiseExactly(const Tensor& weights, size_t axis);

/// Weights of float32 rounded to whole numbers in [-127, 127], halves to the even one. A channel's scale is a 127th of its largest weight,
/// so rounding what was rounded gives the same. Channels lie along dimension `axis`. Errors where a weight is not finite.
Result<QuantisedWeights> Round(const Tensor& weights, size_t axis);

}  // namespace collage
