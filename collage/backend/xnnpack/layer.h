#pragma once

#include <limits>
#include <optional>

#include "collage/ir/op_sequence.h"
#include "collage/support/result.h"

namespace collage::xnnpack {

/// A function as XNNPACK sees it: one operator with, where it has room for them, a bias and bounds of its results.
struct Layer {
  const OpSequence::Step* base = nullptr;
  std::optional<size_t> bias = {};  ///< a constant, one value for each channel
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

/// The function must outlive the result. Errors say what XNNPACK does not do.
Result<Layer> RecogniseLayer(const OpSequence& sequence);

/// Does a layer keep its channels last? Else it has rows of features.
bool IsOfImages(const Layer& layer);

}  // namespace collage::xnnpack
