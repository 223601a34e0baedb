#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collage/backend/xsmm/bound_tail.h"
#include "collage/backend/xsmm/forms.h"
#include "collage/backend/xsmm/nbits_loops.h"
#include "collage/backend/xsmm/operands.h"
#include "collage/backend/xsmm/program.h"
#include "collage/op/nbits_product.h"

namespace collage::xsmm {

/// nn.matmul_nbits with constant weights, which stay as they are: panel by panel of columns, some rows at a time, each tile with its tail.
/// Threads take contiguous shares of the panels, so that each reads its own weights only.
class NBitsProgram final : public Program {
 public:
  /// Why there is none for the chain; empty where there is.
  static Status Check(const Chain& chain);
  /// `lanes` is of vectors of float32. Errors are Check's.
  static Result<std::shared_ptr<const Program>> Make(const Chain& chain, int64_t tile_rows, int64_t lanes, int threads);

  [[nodiscard]] size_t pieces() const override { return pieces_; }
  [[nodiscard]] size_t scratch_bytes() const override { return (tail_.slots() * slot_ + sums_) * sizeof(float); }
  void Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const override;

 private:
  struct Panel {
    int64_t first, count;  // columns
    const uint32_t* weights;
  };
  struct Rows {
    int64_t first, count;
  };

  void Pack(const Chain& chain, int64_t lanes);

  NBitsProduct product_;
  Operands operands_;
  Source data_;
  BoundTail tail_;
  std::vector<Rows> rows_;
  std::vector<Panel> panels_;
  NBitsLoop loop_ = nullptr;
  size_t pieces_ = 1;
  size_t slot_ = 0;  // elements of a tile in scratch memory
  size_t sums_ = 0;  // elements of the sums of blocks behind the tiles there; none where no offset needs them
};

}  // namespace collage::xsmm
