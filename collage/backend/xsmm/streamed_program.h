#pragma once

#include <cstdint>
#include <memory>

#include "collage/backend/xsmm/panel_program.h"
#include "collage/backend/xsmm/streamed_loops.h"

namespace collage::xsmm {

/// A product of few rows with a constant matrix.
class StreamedProgram final : public PanelProgram {
 public:
  /// The matrix is stored [columns][depth] where it is transposed, else [depth][columns]. `lanes` is of vectors of float32.
  StreamedProgram(const Chain& chain, bool is_transposed, int64_t tile_rows, int64_t lanes, int threads);

 private:
  void Multiply(const Tile& tile) const override;

  StreamedLoop loop_ = nullptr;
};

}  // namespace collage::xsmm
