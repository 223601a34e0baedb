#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "collage/backend/xsmm/bound_tail.h"
#include "collage/backend/xsmm/forms.h"
#include "collage/backend/xsmm/micro_kernel.h"
#include "collage/backend/xsmm/operands.h"
#include "collage/backend/xsmm/panel_loops.h"
#include "collage/backend/xsmm/panel_weights.h"
#include "collage/backend/xsmm/program.h"

namespace collage::xsmm {

/// Where weights become numbers of float32.
enum class Widening {
  kInRegisters,  ///< again for each few rows, by loops of our own: where weights come from memory once, nothing else costs
  kInScratch     ///< a panel at a time, and the library's kernels multiply all rows by that
};

/// A product with constant weights: panel by panel of columns, some rows at a time, each tile with its tail. Threads take contiguous shares
/// of the panels, so that each reads its own weights only, and in order.
class PanelProgram final : public Program {
 public:
  /// `lanes` is of vectors of float32; weights of 32 bits are not widened in scratch memory. Errors where the library declines.
  static Result<std::shared_ptr<const Program>> Make(const Chain& chain, const PanelWeights& weights, Widening widening, int64_t tile_rows,
                                                     int64_t lanes, int threads);

  [[nodiscard]] size_t pieces() const override { return pieces_; }
  [[nodiscard]] size_t scratch_bytes() const override { return (tail_.slots() * slot_ + sums_ + widened_) * sizeof(float); }
  void Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const override;

 private:
  struct Panel {
    int64_t first, count;  // columns
    const uint32_t* weights;
  };
  struct RowPart {
    int64_t first, count;
  };

  PanelProgram(const Chain& chain, const PanelWeights& weights, int64_t tile_rows, int64_t lanes, int threads);
  void Pack(const PanelWeights& weights);
  Status WidenInScratch(int64_t bits);
  /// In whole vectors.
  [[nodiscard]] int64_t WidthOf(const Panel& panel) const;
  [[nodiscard]] PackedPanel PackedOf(const Panel& panel) const { return {panel.weights, has_offsets_, depth_, block_, panel.count}; }

  int64_t lanes_ = 0;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  int64_t depth_ = 0;
  int64_t block_ = 0;
  int64_t blocks_ = 0;
  bool has_offsets_ = false;
  Operands operands_;
  Source data_;
  BoundTail tail_;
  std::vector<RowPart> row_parts_;
  std::vector<Panel> panels_;
  PanelLoop loop_ = nullptr;
  PanelWidener widen_ = nullptr;                                // where weights are widened in scratch memory, for:
  std::map<std::pair<int64_t, int64_t>, MicroKernel> kernels_;  // by rows and columns
  size_t pieces_ = 1;
  size_t slot_ = 0;     // elements of a tile in scratch memory
  size_t sums_ = 0;     // elements of the sums of blocks behind the tiles there
  size_t widened_ = 0;  // elements of a widened panel, likewise
};

}  // namespace collage::xsmm
