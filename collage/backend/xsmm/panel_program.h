#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collage/backend/xsmm/bound_tail.h"
#include "collage/backend/xsmm/forms.h"
#include "collage/backend/xsmm/operands.h"
#include "collage/backend/xsmm/panel_loops.h"
#include "collage/backend/xsmm/panel_weights.h"
#include "collage/backend/xsmm/program.h"

namespace collage::xsmm {

/// A product with constant weights by loops of our own: panel by panel of columns, some rows at a time, each tile with its tail. Threads
/// take contiguous shares of the panels, so that each reads its own weights only, and in order.
class PanelProgram final : public Program {
 public:
  /// `lanes` is of vectors of float32.
  PanelProgram(const Chain& chain, const PanelWeights& weights, int64_t tile_rows, int64_t lanes, int threads);

  [[nodiscard]] size_t pieces() const override { return pieces_; }
  [[nodiscard]] size_t scratch_bytes() const override { return (tail_.slots() * slot_ + sums_) * sizeof(float); }
  void Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const override;

 private:
  struct Panel {
    int64_t first, count;  // columns
    const uint32_t* weights;
  };
  struct RowPart {
    int64_t first, count;
  };

  void Pack(const PanelWeights& weights, int64_t lanes);

  int64_t rows_ = 0;
  int64_t columns_ = 0;
  int64_t depth_ = 0;
  int64_t block_ = 0;
  int64_t blocks_ = 0;
  Operands operands_;
  Source data_;
  BoundTail tail_;
  std::vector<RowPart> row_parts_;
  std::vector<Panel> panels_;
  PanelLoop loop_ = nullptr;
  size_t pieces_ = 1;
  size_t slot_ = 0;  // elements of a tile in scratch memory
  size_t sums_ = 0;  // elements of the sums of blocks behind the tiles there; none where there are no offsets
};

}  // namespace collage::xsmm
