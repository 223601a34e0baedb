#pragma once

#include <optional>

#include "collage/ir/op_sequence.h"

namespace collage::dnnl_backend {

/// Layer normalisation over the last dimension.
struct LayerNormalization {
  size_t input;
  std::optional<size_t> scale;  ///< constant vectors over the last dimension
  std::optional<size_t> shift;
  double epsilon;
  size_t result;
};

/// The operator nn.layer_norm along the last dimension, alone.
std::optional<LayerNormalization> ReadLayerNormalization(const OpSequence& sequence);

}  // namespace collage::dnnl_backend
