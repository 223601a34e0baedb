#pragma once

#include <optional>

#include "collage/ir/op_sequence.h"

namespace collage::dnnl_backend {

/// A channel shuffle: the channels seen as `groups` rows, transposed.
struct Shuffle {
  size_t input;
  size_t result;
  int64_t groups;
};

/// reshape(transpose(reshape(x, (N, groups, C / groups, H, W)), (0, 2, 1, 3, 4)), (N, C, H, W)).
std::optional<Shuffle> RecogniseShuffle(const OpSequence& sequence);

}  // namespace collage::dnnl_backend
