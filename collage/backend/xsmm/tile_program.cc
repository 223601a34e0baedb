#include "collage/backend/xsmm/tile_program.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "collage/backend/xsmm/packing.h"

namespace collage::xsmm {
namespace {

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

double OperationsOf(const Tiling& tiling) {
  double depth = 0;  // of all rows
  for (const Tiling::Rows& rows : tiling.rows) {
    const Tiling::Kind& kind = tiling.kinds[rows.kind];
    depth += static_cast<double>(rows.count) * static_cast<double>(kind.depth) * static_cast<double>(kind.row_terms.size());
  }
  return 2.0 * static_cast<double>(tiling.batches.size()) * depth * static_cast<double>(TotalCount(tiling.panels));
}

}  // namespace

Result<std::shared_ptr<const Program>> TileProgram::Make(const Chain& chain, const Form& form, Tiling tiling, int threads) {
  auto program = std::make_shared<TileProgram>();
  program->tiling_ = std::move(tiling);
  const Tiling& cut = program->tiling_;
  program->pieces_ = PiecesWorth(OperationsOf(cut), cut.TileCount(), threads);
  program->rows_ = program->operands_.Of(chain, cut.row_value, form.data);
  if (cut.packing) {
    program->panels_.constant = program->Packed(*chain.sequence->values[cut.panel_value].constant);
  } else {
    program->panels_ = program->operands_.Of(chain, cut.panel_value, form.data);
  }
  program->tail_ = BoundTail(chain, chain.tail, form.result, program->operands_);
  program->SetScratch();
  COLLAGE_TRY_STATUS(program->MakeKernels());
  return program;
}

Status TileProgram::MakeKernels() {
  std::map<std::tuple<size_t, int64_t, int64_t>, size_t> known;
  kernel_of_.assign(tiling_.rows.size(), {});
  for (size_t r = 0; r < tiling_.rows.size(); ++r) {
    const Tiling::Rows& rows = tiling_.rows[r];
    for (const Tiling::Panel& panel : tiling_.panels) {
      const auto [at, is_new] = known.try_emplace({rows.kind, rows.count, panel.count}, kernels_.size());
      kernel_of_[r].push_back(at->second);
      if (is_new) kernels_.push_back(COLLAGE_TRY(MakeParts(rows, panel)));
    }
  }
  return {};
}

Result<std::vector<TileProgram::DepthPart>> TileProgram::MakeParts(const Tiling::Rows& rows, const Tiling::Panel& panel) const {
  const Tiling::Kind& kind = tiling_.kinds[rows.kind];
  const bool is_dense = tiling_.packing || tiling_.transposes_panels;
  MicroShape shape{rows.count,
                   panel.count,
                   kind.depth,
                   kind.row_stride,
                   is_dense ? panel.count : tiling_.panel_stride,
                   tail_.IsEmpty() ? kind.result_stride : panel.count,
                   kind.row_terms,
                   {}};
  for (const int64_t row : kind.panel_terms) shape.panel_terms.push_back(row * panel.count);
  if (tiling_.fetched_depth == 0) return std::vector<DepthPart>{{0, COLLAGE_TRY(MicroKernel::Make(shape))}};
  std::vector<DepthPart> parts;
  for (const auto& [begin, depth] : CutEvenly(kind.depth, tiling_.fetched_depth, 1)) {
    shape.depth = depth;
    shape.adds = begin > 0;
    shape.fetches = false;
    MicroKernel kernel = COLLAGE_TRY(MicroKernel::Make(shape));
    shape.fetches = true;
    parts.push_back({begin, std::move(kernel), COLLAGE_TRY(MicroKernel::Make(shape))});
  }
  return parts;
}

void TileProgram::SetScratch() {
  const int64_t columns = LargestCount(tiling_.panels);
  slot_ = WholeLines(LargestCount(tiling_.rows) * columns);
  scratch_ = tail_.slots() * slot_ + (tiling_.transposes_panels ? WholeLines(columns * tiling_.depth) : 0);
}

const float* TileProgram::Packed(const Tensor& constant) {
  float* packed = operands_.Allocate(PackedCount(tiling_));
  Pack(tiling_, constant.Data<float>(), packed);
  return packed;
}

void TileProgram::Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const {
  const size_t tiles = tiling_.TileCount();
  const size_t begin = tiles * piece / pieces_;
  const size_t end = tiles * (piece + 1) / pieces_;
  const size_t row_count = tiling_.rows.size();
  const size_t panel_count = tiling_.panels.size();
  const bool by_panels = tiling_.order == Tiling::Order::kPanels;
  const float* rows = rows_.In(inputs);
  const float* panels = panels_.In(inputs);
  float* transposed = scratch + tail_.slots() * slot_;
  size_t held = tiles;  // the panel that is transposed, counted over all batches
  for (size_t t = begin; t < end; ++t) {
    const size_t batch_number = t / (row_count * panel_count);
    const size_t in_batch = t % (row_count * panel_count);
    const size_t r = by_panels ? in_batch % row_count : in_batch / panel_count;
    const size_t p = by_panels ? in_batch / row_count : in_batch % panel_count;
    const Tiling::Batch& batch = tiling_.batches[batch_number];
    const Tiling::Rows& row_part = tiling_.rows[r];
    const Tiling::Panel& panel_part = tiling_.panels[p];
    const TailTile tile{row_part.count,
                        panel_part.count,
                        batch.result + row_part.result + panel_part.result,
                        tiling_.kinds[row_part.kind].result_stride,
                        batch.channel + (tiling_.channels_along_rows ? row_part.channel : panel_part.channel),
                        tiling_.channels_along_rows};
    const float* panel = panels + batch.panel + panel_part.offset;
    if (tiling_.transposes_panels) {
      if (held != batch_number * panel_count + p) TransposePanel(panel, tiling_.panel_stride, panel_part.count, tiling_.depth, transposed);
      held = batch_number * panel_count + p;
      panel = transposed;
    }
    tail_.Prefetch(tile, inputs);
    // The first tile of a panel is the only one that finds it far away.
    const bool is_first = r == 0 || t == begin;
    const float* next_panel =
        r + 1 == row_count && p + 1 < panel_count && t + 1 < end ? panels + batch.panel + tiling_.panels[p + 1].offset : nullptr;
    const std::vector<DepthPart>& parts = kernels_[kernel_of_[r][p]];
    for (size_t d = 0; d < parts.size(); ++d) {
      const float* part_rows = rows + batch.row + row_part.offset + parts[d].begin;
      const float* part = panel + parts[d].begin * panel_part.count;
      float* target = tail_.IsEmpty() ? result + tile.result : scratch;
      const float* next = d + 1 == parts.size() ? next_panel : is_first ? panel + parts[d + 1].begin * panel_part.count : nullptr;
      if (next && parts[d].fetching) {
        (*parts[d].fetching)(part_rows, part, target, next);
      } else {
        parts[d].kernel(part_rows, part, target);
      }
    }
    if (!tail_.IsEmpty()) tail_.Run(tile, inputs, result, scratch, slot_);
  }
}

}  // namespace collage::xsmm
