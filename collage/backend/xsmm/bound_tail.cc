#include "collage/backend/xsmm/bound_tail.h"

#include <utility>

namespace collage::xsmm {
namespace {

using Kind = TailArgument::Kind;

/// All that the arguments of one run lie in.
struct Memory {
  std::span<const void* const> inputs;
  const float* scratch;
  size_t slot;
};

TileView ViewOf(const TailArgument& argument, const Source& source, const TailTile& tile, const Memory& memory) {
  switch (argument.kind) {
    case Kind::kSlot:
      return {memory.scratch + argument.slot * memory.slot, tile.columns};
    case Kind::kWhole:
      return {source.In(memory.inputs) + tile.result, tile.result_stride};
    case Kind::kChannel:
      if (tile.channels_along_rows) return {source.In(memory.inputs) + tile.channel, 1, true};
      return {source.In(memory.inputs) + tile.channel, 0};
    case Kind::kScalar:
      return {source.In(memory.inputs), 0, true};
    case Kind::kNone:
      break;
  }
  return {&kZero, 0, true};
}

}  // namespace

BoundTail::BoundTail(const Chain& chain, const Tail& tail, const Layout& result, Operands& operands) : slots_(tail.slots) {
  const auto bind = [&](const TailArgument& argument) -> Source {
    if (argument.kind == Kind::kSlot || argument.kind == Kind::kNone) return {};
    const Source source = operands.Of(chain, argument.value, argument.kind == Kind::kWhole ? result : Layout());
    if (argument.kind == Kind::kWhole) wholes_.push_back(source);
    return source;
  };
  for (const TailStep& step : tail.steps) steps_.push_back({step, bind(step.first), bind(step.second), bind(step.third)});
}

std::optional<BoundTail::InRegisters> BoundTail::AsInRegisters() const {
  if (steps_.size() != 1 || !steps_[0].step.bounds) return std::nullopt;
  const Step& only = steps_[0];
  const bool has_bias = only.step.second.kind == Kind::kChannel;
  return InRegisters{has_bias ? std::optional(only.second) : std::nullopt, *only.step.bounds};
}

void BoundTail::Prefetch(const TailTile& tile, std::span<const void* const> inputs) const {
  constexpr int64_t kLine = 64 / sizeof(float);
  for (const Source& whole : wholes_) {
    const float* row = whole.In(inputs) + tile.result;
    for (int64_t r = 0; r < tile.rows; ++r, row += tile.result_stride) {
      for (int64_t c = 0; c < tile.columns; c += kLine) __builtin_prefetch(row + c, 1);
    }
  }
}

void BoundTail::Run(const TailTile& tile, std::span<const void* const> inputs, float* result, float* scratch, size_t slot) const {
  const Memory memory{inputs, scratch, slot};
  for (const Step& one : steps_) {
    const bool is_last = &one == &steps_.back();
    const TailStep& step = one.step;
    step.loop({tile.rows, tile.columns, ViewOf(step.first, one.first, tile, memory), ViewOf(step.second, one.second, tile, memory),
               ViewOf(step.third, one.third, tile, memory), is_last ? result + tile.result : scratch + step.slot * slot,
               is_last ? tile.result_stride : tile.columns, step.alpha, step.beta});
  }
}

}  // namespace collage::xsmm
