#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collage/backend/xsmm/bound_tail.h"
#include "collage/backend/xsmm/forms.h"
#include "collage/backend/xsmm/operands.h"
#include "collage/backend/xsmm/program.h"

namespace collage::xsmm {

/// A product with constant weights by loops of our own: panel by panel of columns, some rows at a time, each tile with its tail. Threads
/// take contiguous shares of the panels, so that each reads its own weights only, and in order.
class PanelProgram : public Program {
 public:
  /// Vectors of columns that a panel has at most.
  static constexpr int64_t kMostVectors = 4;

  [[nodiscard]] size_t pieces() const override { return pieces_; }
  [[nodiscard]] size_t scratch_bytes() const override { return (tail_.slots() * slot_ + prepared_) * sizeof(float); }
  void Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const final;

 protected:
  struct Panel {
    int64_t first, count;           // columns
    const void* weights = nullptr;  // packed
  };
  /// Of the product. Numbers are elements.
  struct Tile {
    const float* data;  // of the first row
    int64_t first_row, rows;
    const Panel* panel;
    float* result;
    int64_t result_row;     // from row to row
    const float* prepared;  // what Prepare made
  };

  /// `lanes` is of vectors of float32. Weights are for the subclass to pack.
  PanelProgram(const Chain& chain, int64_t tile_rows, int64_t lanes, int threads);

  virtual void Multiply(const Tile& tile) const = 0;
  /// What each piece computes from the data beforehand, `prepared_` elements.
  virtual void Prepare(const float* /*data*/, float* /*prepared*/) const {}

  int64_t rows_ = 0;
  int64_t columns_ = 0;
  int64_t depth_ = 0;
  Operands operands_;
  std::vector<Panel> panels_;
  size_t prepared_ = 0;

 private:
  struct RowPart {
    int64_t first, count;
  };

  Source data_;
  BoundTail tail_;
  std::vector<RowPart> row_parts_;
  size_t pieces_ = 1;
  size_t slot_ = 0;  // elements of a tile in scratch memory
};

/// The least multiple of `unit` that is no less than `count`.
inline int64_t RoundedUp(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

}  // namespace collage::xsmm
