#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collage/backend/xsmm/integer_loops.h"
#include "collage/backend/xsmm/panel_program.h"
#include "collage/op/quantised_weights.h"

namespace collage::xsmm {

/// A product with constant weights that are kept as integers of 8 bits, a scale for each channel.
class IntegerProgram final : public PanelProgram {
 public:
  /// Of the chain's integers, or else of its weights, which are rounded. `lanes` is of vectors of float32. Errors where weights are not
  /// finite.
  static Result<std::shared_ptr<const Program>> Make(const Chain& chain, int64_t tile_rows, int64_t lanes, int threads);

  IntegerProgram(const Chain& chain, const QuantisedWeights& weights, int64_t tile_rows, int64_t lanes, int threads);

 private:
  void Multiply(const Tile& tile) const override;
  /// Channels of the weights lie along dimension `axis`.
  void Pack(const QuantisedWeights& weights, size_t axis, int64_t lanes);

  std::vector<float> scales_;
  IntegerProductLoop loop_ = nullptr;
};

}  // namespace collage::xsmm
