#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collage/backend/xsmm/bound_tail.h"
#include "collage/backend/xsmm/forms.h"
#include "collage/backend/xsmm/integer_loops.h"
#include "collage/backend/xsmm/operands.h"
#include "collage/backend/xsmm/program.h"
#include "collage/op/quantised_weights.h"

namespace collage::xsmm {

/// A product with constant weights that are kept as integers of 8 bits, a scale for each channel: panel by panel of columns, some rows at a
/// time, each tile with its tail. Threads take contiguous shares of the panels, so that each reads its own weights only.
class IntegerProgram final : public Program {
 public:
  /// Of the chain's integers, or else of its weights, which are rounded. `lanes` is of vectors of float32. Errors where weights are not
  /// finite.
  static Result<std::shared_ptr<const Program>> Make(const Chain& chain, int64_t tile_rows, int64_t lanes, int threads);

  [[nodiscard]] size_t pieces() const override { return pieces_; }
  [[nodiscard]] size_t scratch_bytes() const override { return tail_.slots() * slot_ * sizeof(float); }
  void Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const override;

 private:
  struct Panel {
    int64_t first, count;  // columns
    const int8_t* weights;
  };
  struct Rows {
    int64_t first, count;
  };

  /// Channels of the weights lie along dimension `axis`.
  void Pack(const QuantisedWeights& weights, size_t axis, int64_t lanes);

  int64_t depth_ = 0;
  int64_t columns_ = 0;
  Operands operands_;
  Source data_;
  BoundTail tail_;
  std::vector<Rows> rows_;
  std::vector<Panel> panels_;
  std::vector<float> scales_;
  IntegerProductLoop loop_ = nullptr;
  size_t pieces_ = 1;
  size_t slot_ = 0;  // elements of a tile in scratch memory
};

}  // namespace collage::xsmm
