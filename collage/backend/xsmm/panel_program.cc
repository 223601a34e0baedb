#include "collage/backend/xsmm/panel_program.h"

#include <algorithm>
#include <bit>

namespace collage::xsmm {
namespace {

int64_t RoundedUp(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

}  // namespace

PanelProgram::PanelProgram(const Chain& chain, const PanelWeights& weights, int64_t tile_rows, int64_t lanes, int threads)
    : lanes_(lanes),
      depth_(chain.ShapeOf(chain.Data()).back()),
      block_(weights.block),
      has_offsets_(weights.offset != nullptr),
      loop_(PanelLoopFor(lanes, weights.bits)) {
  columns_ = chain.ResultShape().back();
  rows_ = ElementCount(chain.ShapeOf(chain.Data())) / depth_;
  blocks_ = RoundedUp(depth_, block_) / block_;
  for (const auto& [first, count] : CutEvenly(rows_, tile_rows, 1)) row_parts_.push_back({first, count});
  // Narrower where there would not be one panel for each thread.
  const int64_t vectors = RoundedUp(columns_, lanes) / lanes;
  const int64_t most = lanes * std::clamp<int64_t>(vectors / std::max(threads, 1), 1, kPanelVectors);
  for (const auto& [first, count] : CutEvenly(columns_, most, lanes)) panels_.push_back({first, count, nullptr});
  Pack(weights);
  data_ = operands_.Of(chain, chain.Data(), Layout());
  tail_ = BoundTail(chain, chain.tail, Layout(), operands_);
  const double operations = 2.0 * static_cast<double>(rows_) * static_cast<double>(columns_) * static_cast<double>(depth_);
  pieces_ = PiecesWorth(operations, panels_.size(), threads);
  slot_ = WholeLines(std::min(rows_, tile_rows) * most);
}

Result<std::shared_ptr<const Program>> PanelProgram::Make(const Chain& chain, const PanelWeights& weights, Widening widening,
                                                          int64_t tile_rows, int64_t lanes, int threads) {
  std::shared_ptr<PanelProgram> program(new PanelProgram(chain, weights, tile_rows, lanes, threads));
  if (widening == Widening::kInScratch) {
    COLLAGE_TRY_STATUS(program->WidenInScratch(weights.bits));
  } else if (program->has_offsets_) {
    program->sums_ = WholeLines(program->rows_ * program->blocks_);
  }
  return program;
}

Status PanelProgram::WidenInScratch(int64_t bits) {
  widen_ = PanelWidenerFor(lanes_, bits);
  for (const Panel& panel : panels_) {
    widened_ = std::max(widened_, WholeLines(depth_ * WidthOf(panel)));
    for (const RowPart& rows : row_parts_) {
      const std::pair size(rows.count, panel.count);
      if (kernels_.contains(size)) continue;
      const MicroShape shape{rows.count, panel.count, depth_, depth_, WidthOf(panel), tail_.IsEmpty() ? columns_ : panel.count};
      kernels_.emplace(size, COLLAGE_TRY(MicroKernel::Make(shape)));
    }
  }
  return {};
}

int64_t PanelProgram::WidthOf(const Panel& panel) const { return RoundedUp(panel.count, lanes_); }

void PanelProgram::Pack(const PanelWeights& weights) {
  const int64_t in_word = 32 / weights.bits;
  const int64_t lines = block_ / in_word + (weights.scale ? 1 : 0) + (weights.offset ? 1 : 0);  // of a block, a word for each column
  // What is allocated is zero, as the columns behind the last and the depths behind the last have to be.
  auto* packed = reinterpret_cast<uint32_t*>(operands_.Allocate(blocks_ * lines * RoundedUp(columns_, lanes_)));
  std::vector<uint32_t> values;
  for (Panel& panel : panels_) {
    panel.weights = packed;
    const int64_t width = WidthOf(panel);
    values.resize(static_cast<size_t>(depth_ * panel.count));
    weights.read(panel.first, panel.count, values.data());
    for (int64_t block = 0; block < blocks_; ++block) {
      for (const auto* factor : {&weights.scale, &weights.offset}) {
        if (!*factor) continue;
        for (int64_t c = 0; c < panel.count; ++c) packed[c] = std::bit_cast<uint32_t>((*factor)(panel.first + c, block));
        packed += width;
      }
      const int64_t first = block * block_;
      for (int64_t d = 0; d < std::min(block_, depth_ - first); ++d) {
        const uint32_t* from = values.data() + (first + d) * panel.count;
        uint32_t* words = packed + d / in_word * width;
        for (int64_t c = 0; c < panel.count; ++c) words[c] |= from[c] << (d % in_word * weights.bits);
      }
      packed += block_ / in_word * width;
    }
  }
}

void PanelProgram::Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const {
  const float* data = data_.In(inputs);
  float* sums = sums_ == 0 ? nullptr : scratch + tail_.slots() * slot_;
  float* widened = scratch + tail_.slots() * slot_ + sums_;
  for (int64_t row = 0; sums != nullptr && row < rows_; ++row) SumBlocks(data + row * depth_, depth_, block_, sums + row * blocks_);
  const size_t end = panels_.size() * (piece + 1) / pieces_;
  for (size_t p = panels_.size() * piece / pieces_; p < end; ++p) {
    const Panel& panel = panels_[p];
    if (widen_) widen_(PackedOf(panel), widened);
    for (const RowPart& rows : row_parts_) {
      const TailTile tile{rows.count, panel.count, rows.first * columns_ + panel.first, columns_, panel.first};
      tail_.Prefetch(tile, inputs);
      const float* of_rows = data + rows.first * depth_;
      float* products = tail_.IsEmpty() ? result + tile.result : scratch;
      if (widen_) {
        kernels_.at({rows.count, panel.count})(of_rows, widened, products);
      } else {
        const float* sums_of_rows = sums == nullptr ? nullptr : sums + rows.first * blocks_;
        loop_({PackedOf(panel), of_rows, depth_, rows.count, sums_of_rows, blocks_, products, tail_.IsEmpty() ? columns_ : panel.count});
      }
      if (!tail_.IsEmpty()) tail_.Run(tile, inputs, result, scratch, slot_);
    }
  }
}

}  // namespace collage::xsmm
