#include "collage/backend/xsmm/tile_program.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "collage/backend/xsmm/packing.h"
#include "collage/runtime/layout_conversion.h"
#include "collage/support/memory.h"

namespace collage::xsmm {
namespace {

// Multiples of a cache line, so that threads write none of each other's.
size_t WholeLines(int64_t elements) {
  constexpr size_t kLine = 64 / sizeof(float);
  return (static_cast<size_t>(elements) + kLine - 1) / kLine * kLine;
}

template <class Part>
int64_t LargestCount(const std::vector<Part>& parts) {
  int64_t largest = 0;
  for (const Part& part : parts) largest = std::max(largest, part.count);
  return largest;
}

template <class Part>
int64_t TotalCount(const std::vector<Part>& parts) {
  int64_t total = 0;
  for (const Part& part : parts) total += part.count;
  return total;
}

// One for each thread, but none so small that waking the team (0.5 to 3 us) would cost more than it saves.
size_t PiecesOf(const Tiling& tiling, int threads) {
  constexpr double kLeastOperations = 1 << 18;
  const double operations = 2.0 * static_cast<double>(tiling.batches.size()) * static_cast<double>(TotalCount(tiling.rows)) *
                            static_cast<double>(TotalCount(tiling.panels)) * static_cast<double>(tiling.depth) *
                            static_cast<double>(tiling.row_terms.size());
  const auto worth = static_cast<size_t>(operations / kLeastOperations);
  return std::clamp<size_t>(worth, 1, std::min(tiling.TileCount(), static_cast<size_t>(std::max(threads, 1))));
}

}  // namespace

Result<std::shared_ptr<const TileProgram>> TileProgram::Make(const Chain& chain, const Form& form, int64_t tile_rows, int threads) {
  auto program = std::make_shared<TileProgram>();
  COLLAGE_TRY_STATUS(program->Build(chain, form, tile_rows, threads));
  return program;
}

Status TileProgram::Build(const Chain& chain, const Form& form, int64_t tile_rows, int threads) {
  tiling_ = form.tile(tile_rows);
  slots_ = chain.tail.slots;
  pieces_ = PiecesOf(tiling_, threads);
  rows_ = SourceOf(chain, tiling_.row_value, form.data);
  if (tiling_.packing) {
    panels_.constant = KeepPacked(*chain.sequence->values[tiling_.panel_value].constant);
  } else {
    panels_ = SourceOf(chain, tiling_.panel_value, form.data);
  }
  for (const TailStep& step : chain.tail.steps) {
    Step bound{step, {}, {}, {}};
    const auto bind = [&](const TailArgument& argument, Source& source) {
      if (argument.kind == TailArgument::Kind::kSlot || argument.kind == TailArgument::Kind::kNone) return;
      source = SourceOf(chain, argument.value, argument.kind == TailArgument::Kind::kWhole ? form.result : Layout());
    };
    bind(step.first, bound.first);
    bind(step.second, bound.second);
    bind(step.third, bound.third);
    for (const auto& [argument, source] :
         {std::pair(&step.first, &bound.first), {&step.second, &bound.second}, {&step.third, &bound.third}}) {
      if (argument->kind == TailArgument::Kind::kWhole) wholes_.push_back(*source);
    }
    steps_.push_back(bound);
  }
  SetScratch();
  return MakeKernels();
}

// Tiles of a tail lie closely packed in scratch memory: in the result their rows could be a power of two apart, and share few sets of the
// first-level cache.
Status TileProgram::MakeKernels() {
  std::map<std::pair<int64_t, int64_t>, size_t> known;
  kernel_of_.assign(tiling_.rows.size(), {});
  for (size_t r = 0; r < tiling_.rows.size(); ++r) {
    for (const Tiling::Panel& panel : tiling_.panels) {
      const auto [at, is_new] = known.try_emplace({tiling_.rows[r].count, panel.count}, kernels_.size());
      kernel_of_[r].push_back(at->second);
      if (!is_new) continue;
      const bool is_dense = tiling_.packing || tiling_.transposes_panels;
      kernels_.push_back(COLLAGE_TRY(MicroKernel::Make(
          {tiling_.rows[r].count, panel.count, tiling_.depth, tiling_.row_stride, is_dense ? panel.count : tiling_.panel_stride,
           steps_.empty() ? tiling_.result_stride : panel.count, tiling_.row_terms, PanelTerms(tiling_, panel.count)})));
    }
  }
  return {};
}

void TileProgram::SetScratch() {
  const int64_t columns = LargestCount(tiling_.panels);
  slot_ = WholeLines(LargestCount(tiling_.rows) * columns);
  scratch_ = slots_ * slot_ + (tiling_.transposes_panels ? WholeLines(columns * tiling_.depth) : 0);
}

TileProgram::Source TileProgram::SourceOf(const Chain& chain, size_t value, const Layout& layout) {
  const OpSequence::Value& tensor = chain.sequence->values[value];
  if (!tensor.constant) {
    const std::vector<size_t>& parameters = chain.sequence->parameters;
    return {nullptr, static_cast<size_t>(std::find(parameters.begin(), parameters.end(), value) - parameters.begin())};
  }
  if (layout.IsPlain()) return {Keep(tensor.constant->Bytes(), tensor.constant->ByteCount())};
  storage_.push_back(AllocateWeights(PhysicalByteCount(tensor.type, layout)));
  LayoutConversion(tensor.type, Layout(), layout, 1).Run(tensor.constant->Bytes(), storage_.back().get());
  return {reinterpret_cast<const float*>(storage_.back().get())};
}

const float* TileProgram::Keep(const void* data, size_t bytes) {
  storage_.push_back(AllocateWeights(bytes));
  std::memcpy(storage_.back().get(), data, bytes);
  return reinterpret_cast<const float*>(storage_.back().get());
}

const float* TileProgram::KeepPacked(const Tensor& constant) {
  storage_.push_back(AllocateWeights(static_cast<size_t>(PackedCount(tiling_)) * sizeof(float)));
  auto* packed = reinterpret_cast<float*>(storage_.back().get());
  Pack(tiling_, constant.Data<float>(), packed);
  return packed;
}

void TileProgram::Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const {
  const size_t tiles = tiling_.TileCount();
  const size_t end = tiles * (piece + 1) / pieces_;
  const size_t row_count = tiling_.rows.size();
  const size_t panel_count = tiling_.panels.size();
  const bool by_panels = tiling_.order == Tiling::Order::kPanels;
  const float* rows = rows_.In(inputs);
  const float* panels = panels_.In(inputs);
  float* transposed = scratch + slots_ * slot_;
  size_t held = tiles;  // the panel that is transposed, counted over all batches
  for (size_t t = tiles * piece / pieces_; t < end; ++t) {
    const size_t batch_number = t / (row_count * panel_count);
    const size_t in_batch = t % (row_count * panel_count);
    const size_t r = by_panels ? in_batch % row_count : in_batch / panel_count;
    const size_t p = by_panels ? in_batch / row_count : in_batch % panel_count;
    const Tiling::Batch& batch = tiling_.batches[batch_number];
    const Tile tile{&tiling_.rows[r], &tiling_.panels[p], batch.result + tiling_.rows[r].result + tiling_.panels[p].result};
    const float* panel = panels + batch.panel + tile.panel->offset;
    if (tiling_.transposes_panels) {
      if (held != batch_number * panel_count + p) TransposePanel(panel, tiling_.panel_stride, tile.panel->count, tiling_.depth, transposed);
      held = batch_number * panel_count + p;
      panel = transposed;
    }
    for (const Source& whole : wholes_) Prefetch(whole.In(inputs), tile);
    kernels_[kernel_of_[r][p]](rows + batch.row + tile.rows->offset, panel, steps_.empty() ? result + tile.result : scratch);
    if (!steps_.empty()) RunTail(tile, inputs, result, scratch);
  }
}

// What the tail will read from memory is on its way while the product is computed: its rows are too short and too far apart for the
// processor to see it coming.
void TileProgram::Prefetch(const float* whole, const Tile& tile) const {
  constexpr int64_t kLine = 64 / sizeof(float);
  const float* row = whole + tile.result;
  for (int64_t r = 0; r < tile.rows->count; ++r, row += tiling_.result_stride) {
    for (int64_t c = 0; c < tile.panel->count; c += kLine) __builtin_prefetch(row + c, 1);
  }
}

void TileProgram::RunTail(const Tile& tile, std::span<const void* const> inputs, float* result, float* scratch) const {
  for (const Step& one : steps_) {
    const bool is_last = &one == &steps_.back();
    const TailStep& step = one.step;
    step.loop({tile.rows->count, tile.panel->count, ViewOf(step.first, one.first, tile, inputs, scratch),
               ViewOf(step.second, one.second, tile, inputs, scratch), ViewOf(step.third, one.third, tile, inputs, scratch),
               is_last ? result + tile.result : scratch + step.slot * slot_, is_last ? tiling_.result_stride : tile.panel->count,
               step.alpha, step.beta});
  }
}

TileView TileProgram::ViewOf(const TailArgument& argument, const Source& source, const Tile& tile, std::span<const void* const> inputs,
                             const float* scratch) const {
  switch (argument.kind) {
    case TailArgument::Kind::kSlot:
      return {scratch + argument.slot * slot_, tile.panel->count};
    case TailArgument::Kind::kWhole:
      return {source.In(inputs) + tile.result, tiling_.result_stride};
    case TailArgument::Kind::kChannel:
      if (tiling_.channels_along_rows) return {source.In(inputs) + tile.rows->channel, 1, true};
      return {source.In(inputs) + tile.panel->channel, 0};
    case TailArgument::Kind::kScalar:
      return {source.In(inputs), 0, true};
    case TailArgument::Kind::kNone:
      break;
  }
  return {&kZero, 0, true};
}

}  // namespace collage::xsmm
