#include "collage/backend/xsmm/panel_program.h"

#include <algorithm>

namespace collage::xsmm {

PanelProgram::PanelProgram(const Chain& chain, int64_t tile_rows, int64_t lanes, int threads) {
  const Shape& data = chain.ShapeOf(chain.Data());
  depth_ = data.back();
  columns_ = chain.ResultShape().back();
  rows_ = ElementCount(data) / depth_;
  for (const auto& [first, count] : CutEvenly(rows_, tile_rows, 1)) row_parts_.push_back({first, count});
  // Narrower where there would not be one panel for each thread.
  const int64_t vectors = RoundedUp(columns_, lanes) / lanes;
  const int64_t most = lanes * std::clamp<int64_t>(vectors / std::max(threads, 1), 1, kMostVectors);
  for (const auto& [first, count] : CutEvenly(columns_, most, lanes)) panels_.push_back({first, count});
  data_ = operands_.Of(chain, chain.Data(), Layout());
  tail_ = BoundTail(chain, chain.tail, Layout(), operands_);
  const double operations = 2.0 * static_cast<double>(rows_) * static_cast<double>(columns_) * static_cast<double>(depth_);
  pieces_ = PiecesWorth(operations, panels_.size(), threads);
  slot_ = WholeLines(std::min(rows_, tile_rows) * most);
}

void PanelProgram::Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const {
  const float* data = data_.In(inputs);
  float* prepared = scratch + tail_.slots() * slot_;
  if (prepared_ > 0) Prepare(data, prepared);
  const size_t end = panels_.size() * (piece + 1) / pieces_;
  for (size_t p = panels_.size() * piece / pieces_; p < end; ++p) {
    const Panel& panel = panels_[p];
    for (const RowPart& rows : row_parts_) {
      const TailTile tile{rows.count, panel.count, rows.first * columns_ + panel.first, columns_, panel.first};
      tail_.Prefetch(tile, inputs);
      Multiply({data + rows.first * depth_, rows.first, rows.count, &panel, tail_.IsEmpty() ? result + tile.result : scratch,
                tail_.IsEmpty() ? columns_ : panel.count, prepared});
      if (!tail_.IsEmpty()) tail_.Run(tile, inputs, result, scratch, slot_);
    }
  }
}

}  // namespace collage::xsmm
