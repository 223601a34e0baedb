#pragma once

#include <cstdint>
#include <memory>

#include "collage/backend/xsmm/nbits_loops.h"
#include "collage/backend/xsmm/panel_program.h"
#include "collage/op/nbits_product.h"

namespace collage::xsmm {

/// nn.matmul_nbits with constant weights, which stay as they are.
class NBitsProgram final : public PanelProgram {
 public:
  /// Why there is none for the chain; empty where there is.
  static Status Check(const Chain& chain);
  /// Errors are Check's.
  static Result<std::shared_ptr<const Program>> Make(const Chain& chain, int64_t tile_rows, int64_t lanes, int threads);

  /// Of a chain that passed.
  NBitsProgram(const Chain& chain, int64_t tile_rows, int64_t lanes, int threads);

 private:
  void Multiply(const Tile& tile) const override;
  /// Sums of the data in each block, where some offset needs them.
  void Prepare(const float* data, float* prepared) const override;
  void Pack(const Chain& chain, int64_t lanes);

  NBitsProduct product_;
  NBitsLoop loop_ = nullptr;
};

}  // namespace collage::xsmm
