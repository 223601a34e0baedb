#include "collage/backend/xsmm/integer_program.h"

#include <algorithm>

#include "collage/op/integer_weights.h"

namespace collage::xsmm {
namespace {

size_t AxisOf(const Chain& chain) { return ChannelsOfWeights(*chain.base->op, chain.base->attributes); }

Result<QuantisedWeights> WeightsOf(const Chain& chain) {
  const auto constant = [&](size_t value) -> const Tensor& { return *chain.sequence->values[value].constant; };
  if (!chain.weights) return Round(constant(chain.base->inputs[1]), AxisOf(chain));
  const auto scales = constant(chain.weights->scales).Values<float>();
  return QuantisedWeights{constant(chain.weights->integers), {scales.begin(), scales.end()}};
}

}  // namespace

Result<std::shared_ptr<const Program>> IntegerProgram::Make(const Chain& chain, int64_t tile_rows, int64_t lanes, int threads) {
  return std::make_shared<IntegerProgram>(chain, COLLAGE_TRY(WeightsOf(chain)), tile_rows, lanes, threads);
}

IntegerProgram::IntegerProgram(const Chain& chain, const QuantisedWeights& weights, int64_t tile_rows, int64_t lanes, int threads)
    : PanelProgram(chain, tile_rows, lanes, threads), loop_(IntegerProductLoopFor(lanes)) {
  Pack(weights, AxisOf(chain), lanes);
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

void IntegerProgram::Multiply(const Tile& tile) const {
  loop_({tile.data, depth_, tile.rows, depth_, static_cast<const int8_t*>(tile.panel->weights), scales_.data() + tile.panel->first,
         tile.panel->count, tile.result, tile.result_row});
}

}  // namespace collage::xsmm
