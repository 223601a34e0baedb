#include "collage/backend/xsmm/integer_program.h"

#include <algorithm>

#include "collage/op/integer_weights.h"

namespace collage::xsmm {
namespace {

int64_t RoundedUp(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

Result<QuantisedWeights> WeightsOf(const Chain& chain, size_t axis) {
  const auto constant = [&](size_t value) -> const Tensor& { return *chain.sequence->values[value].constant; };
  if (!chain.weights) return Round(constant(chain.base->inputs[1]), axis);
  const auto scales = constant(chain.weights->scales).Values<float>();
  return QuantisedWeights{constant(chain.weights->integers), {scales.begin(), scales.end()}};
}

}  // namespace

Result<std::shared_ptr<const Program>> IntegerProgram::Make(const Chain& chain, int64_t tile_rows, int64_t lanes, int threads) {
  auto program = std::make_shared<IntegerProgram>();
  const Shape& data = chain.ShapeOf(chain.Data());
  program->depth_ = data.back();
  program->columns_ = chain.ResultShape().back();
  const int64_t rows = ElementCount(data) / program->depth_;
  for (const auto& [first, count] : CutEvenly(rows, tile_rows, 1)) program->rows_.push_back({first, count});
  // Narrower where there would not be one panel for each thread.
  const int64_t vectors = RoundedUp(program->columns_, lanes) / lanes;
  const int64_t most = lanes * std::clamp<int64_t>(vectors / std::max(threads, 1), 1, kIntegerVectors);
  for (const auto& [first, count] : CutEvenly(program->columns_, most, lanes)) program->panels_.push_back({first, count, nullptr});
  const size_t axis = ChannelsOfWeights(*chain.base->op, chain.base->attributes);
  program->Pack(COLLAGE_TRY(WeightsOf(chain, axis)), axis, lanes);
  program->data_ = program->operands_.Of(chain, chain.Data(), Layout());
  program->tail_ = BoundTail(chain, chain.tail, Layout(), program->operands_);
  program->loop_ = IntegerProductLoopFor(lanes);
  const double operations = 2.0 * static_cast<double>(rows) * static_cast<double>(program->columns_) * static_cast<double>(program->depth_);
  program->pieces_ = PiecesWorth(operations, program->panels_.size(), threads);
  program->slot_ = WholeLines(std::min(rows, tile_rows) * most);
  return program;
}

void IntegerProgram::Pack(const QuantisedWeights& weights, size_t axis, int64_t lanes) {
  const int64_t depth_stride = axis == 0 ? 1 : columns_;
  const int64_t column_stride = axis == 0 ? depth_ : 1;
  const auto* from = weights.values.Data<int8_t>();
  const int64_t bytes = RoundedUp(depth_, kIntegerDepths) * RoundedUp(columns_, lanes);
  // What is allocated is zero, as the columns behind the last have to be.
  auto* packed = reinterpret_cast<int8_t*>(operands_.Allocate(bytes / static_cast<int64_t>(sizeof(float))));
  for (Panel& panel : panels_) {
    panel.weights = packed;
    const int8_t* of_panel = from + panel.first * column_stride;
    for (int64_t d = 0; d < depth_; d += kIntegerDepths, packed += RoundedUp(panel.count, lanes) * kIntegerDepths) {
      for (int64_t c = 0; c < panel.count; ++c) {
        for (int64_t byte = 0; byte < std::min(kIntegerDepths, depth_ - d); ++byte)
          packed[c * kIntegerDepths + byte] = of_panel[(d + byte) * depth_stride + c * column_stride];
      }
    }
  }
  scales_ = weights.scales;
  scales_.resize(static_cast<size_t>(RoundedUp(columns_, lanes)), 0);
}

void IntegerProgram::Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const {
  const float* data = data_.In(inputs);
  const size_t end = panels_.size() * (piece + 1) / pieces_;
  for (size_t p = panels_.size() * piece / pieces_; p < end; ++p) {
    const Panel& panel = panels_[p];
    for (const Rows& rows : rows_) {
      const TailTile tile{rows.count, panel.count, rows.first * columns_ + panel.first, columns_, panel.first};
      tail_.Prefetch(tile, inputs);
      loop_({data + rows.first * depth_, depth_, rows.count, depth_, panel.weights, scales_.data() + panel.first, panel.count,
             tail_.IsEmpty() ? result + tile.result : scratch, tail_.IsEmpty() ? columns_ : panel.count});
      if (!tail_.IsEmpty()) tail_.Run(tile, inputs, result, scratch, slot_);
    }
  }
}

}  // namespace collage::xsmm
