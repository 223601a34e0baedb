#include "collage/backend/xsmm/streamed_program.h"

namespace collage::xsmm {

StreamedProgram::StreamedProgram(const Chain& chain, bool is_transposed, int64_t tile_rows, int64_t lanes, int threads)
    : PanelProgram(chain, tile_rows, lanes, threads), loop_(StreamedLoopFor(lanes)) {
  const float* matrix = chain.sequence->values[chain.base->inputs[1]].constant->Data<float>();
  const int64_t depth_stride = is_transposed ? 1 : columns_;
  const int64_t column_stride = is_transposed ? depth_ : 1;
  // What is allocated is zero, as the columns behind the last have to be.
  float* packed = operands_.Allocate(depth_ * RoundedUp(columns_, lanes));
  for (Panel& panel : panels_) {
    panel.weights = packed;
    for (int64_t d = 0; d < depth_; ++d, packed += RoundedUp(panel.count, lanes)) {
      const float* from = matrix + d * depth_stride + panel.first * column_stride;
      for (int64_t c = 0; c < panel.count; ++c) packed[c] = from[c * column_stride];
    }
  }
}

void StreamedProgram::Multiply(const Tile& tile) const {
  loop_({tile.data, depth_, tile.rows, depth_, static_cast<const float*>(tile.panel->weights), tile.panel->count, tile.result,
         tile.result_row});
}

}  // namespace collage::xsmm
