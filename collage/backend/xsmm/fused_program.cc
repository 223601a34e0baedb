#include "collage/backend/xsmm/fused_program.h"

#include <algorithm>
#include <limits>
#include <map>

#include "collage/backend/xsmm/packing.h"

namespace collage::xsmm {
namespace {

// As for products. A tile of depthwise results, with a panel of channels, stays in the first-level cache for its tail as well.
constexpr int64_t kTilePixels = 24;

RowWindow RowWindowOf(const Convolution& convolution) {
  const Window& window = convolution.window;
  return {window.kernel[0], window.stride[0], window.dilation[0], window.pad_begin[0], convolution.input[0]};
}

std::vector<RowWindow> RowWindowsOf(const std::vector<Convolution>& convolutions) {
  std::vector<RowWindow> windows;
  for (const Convolution& convolution : convolutions) windows.push_back(RowWindowOf(convolution));
  return windows;
}

// An odd number of lines: rows of pixels that lie a power of two apart would share few sets of a cache.
int64_t PixelOf(int64_t channels) {
  constexpr int64_t kLine = 64 / sizeof(float);
  const auto whole = static_cast<int64_t>(WholeLines(channels));
  return whole / kLine % 2 == 0 ? whole + kLine : whole;
}

// Of deeper products a panel of weights fills the first-level cache (32 KB), and the pass over their tiles is little beside them: they are
// the library's.
bool IsForRegisters(const Convolution& convolution, const InstructionSet& instructions) {
  constexpr int64_t kMostDepth = 128;
  return convolution.input_channels <= kMostDepth && convolution.output_channels % instructions.lanes == 0;
}

double OperationsOf(const Convolution& of) {
  const double results = static_cast<double>(of.batch * of.output_channels * of.output[0] * of.output[1]);
  const int64_t channels = of.input_channels / of.groups;
  return 2 * results * static_cast<double>(of.window.kernel[0] * of.window.kernel[1] * channels);
}

bool IsStrided(const Window& window) { return window.stride[0] != 1 || window.stride[1] != 1; }

}  // namespace

Result<FusedKind> FusedKindOf(const Convolution& convolution) {
  using Extents = std::array<int64_t, 2>;
  const Window& window = convolution.window;
  if (convolution.groups == convolution.input_channels && convolution.input_channels == convolution.output_channels) {
    if (window.kernel[0] > kMostWindowRows)
      return Fail("libxsmm: a window of more than " + std::to_string(kMostWindowRows) + " rows is not computed in a chain");
    return FusedKind::kDepthwise;
  }
  if (convolution.groups != 1 || window.kernel != Extents{1, 1})
    return Fail("libxsmm: in a chain convolutions are by 1x1 in one group, or depthwise");
  if (window.pad_begin != Extents{0, 0} || window.pad_end != Extents{0, 0})
    return Fail("libxsmm: padding of a convolution by 1x1 is not supported");
  return FusedKind::kPointwise;
}

Result<std::shared_ptr<const Program>> FusedProgram::Make(const Chain& chain, const Form& form,
                                                          const std::vector<Convolution>& convolutions, const InstructionSet& instructions,
                                                          int64_t rows, int threads) {
  auto program = std::make_shared<FusedProgram>();
  program->depthwise_ = DepthwiseLoopFor(instructions.lanes);
  program->product_ = PixelProductLoopFor(instructions.lanes);
  program->data_ = program->operands_.Of(chain, chain.Data(), form.data);
  for (size_t i = 0; i < convolutions.size(); ++i) {
    const bool is_last = i == chain.before.size();
    Layer layer{COLLAGE_TRY(FusedKindOf(convolutions[i])), convolutions[i], {}, {}, nullptr, {}};
    layer.tail = BoundTail(chain, is_last ? chain.tail : chain.before[i].tail, is_last ? form.result : Layout(), program->operands_);
    if (layer.kind == FusedKind::kDepthwise || IsForRegisters(convolutions[i], instructions))
      layer.in_registers = layer.tail.AsInRegisters();
    program->layers_.push_back(std::move(layer));
  }
  program->windows_ = RowWindowsOf(convolutions);
  program->SetPieces(std::max<int64_t>(rows, 1), threads);
  program->SetLayers(instructions);
  for (size_t i = 0; i < convolutions.size(); ++i) {
    const OpSequence::Step& step = i == chain.before.size() ? *chain.base : *chain.before[i].base;
    program->PackWeights(program->layers_[i], chain.sequence->values[step.inputs[1]].constant->Data<float>());
  }
  COLLAGE_TRY_STATUS(program->MakeKernels());
  return program;
}

size_t FusedProgram::BytesBetween(const std::vector<Convolution>& convolutions, int64_t rows) {
  const std::vector<RowWindow> windows = RowWindowsOf(convolutions);
  const std::vector<int64_t> kept = RowsKept(windows, CutIntoSteps(windows, {0, convolutions.back().output[0]}, rows));
  int64_t elements = 0;
  for (size_t i = 0; i < kept.size(); ++i) elements += kept[i] * convolutions[i].output[1] * convolutions[i].output_channels;
  return static_cast<size_t>(elements) * sizeof(float);
}

// Each piece is a band of rows, counted over all images.
void FusedProgram::SetPieces(int64_t rows, int threads) {
  double operations = 0;
  for (const Layer& layer : layers_) operations += OperationsOf(layer.convolution);
  const int64_t height = layers_.back().convolution.output[0];
  const int64_t total = layers_.back().convolution.batch * height;
  const auto pieces = static_cast<int64_t>(PiecesWorth(operations, static_cast<size_t>(total), threads));
  for (int64_t piece = 0; piece < pieces; ++piece) {
    std::vector<Part> parts;
    const int64_t end = total * (piece + 1) / pieces;
    for (int64_t row = total * piece / pieces; row < end;) {
      const int64_t image = row / height;
      const int64_t last = std::min(end, (image + 1) * height);
      parts.push_back({image, CutIntoSteps(windows_, {row - image * height, last - image * height}, rows)});
      row = last;
    }
    pieces_.push_back(std::move(parts));
  }
}

// Where everything lies. Panels of what a depthwise convolution reads lie one after another: each is read while it is near. A product
// reads all channels of its pixels.
void FusedProgram::SetLayers(const InstructionSet& instructions) {
  const std::vector<int64_t> kept = RowsKeptByAll();
  size_t slots = 0;
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    const Convolution& convolution = layer.convolution;
    const bool is_product = layer.kind == FusedKind::kPointwise;
    const bool in_panels = !IsLast(layer) && layers_[i + 1].kind == FusedKind::kDepthwise;
    const int64_t channels = convolution.output_channels;
    const int64_t inputs = convolution.input_channels;
    const int64_t rows = IsLast(layer) ? convolution.output[0] : kept[i];
    const int64_t pixel = in_panels || IsLast(layer) ? channels : PixelOf(channels);
    const int64_t row = convolution.output[1] * pixel;
    const int64_t base = IsLast(layer) ? 0 : static_cast<int64_t>(scratch_);
    for (const auto& [first, count] : CutEvenly(channels, instructions.panel_columns, instructions.lanes)) {
      Panel panel{first, count, is_product ? first * inputs : first, {}, {}, {}};
      panel.results = in_panels ? View{base + first * convolution.output[1] * rows, count, convolution.output[1] * count, rows}
                                : View{base + first, pixel, row, rows};
      panel.data = i > 0 ? layers_[i - 1].panels[is_product ? 0 : layer.panels.size()].results
                         : View{is_product ? 0 : first, inputs, convolution.input[1] * inputs, convolution.input[0]};
      slot_ = std::max(slot_, WholeLines(kTilePixels * count));
      layer.panels.push_back(std::move(panel));
    }
    if (!IsLast(layer)) scratch_ += WholeLines(rows * row);
    slots = std::max(slots, layer.tail.slots());
  }
  tails_ = scratch_;
  scratch_ += slots * slot_;
}

std::vector<int64_t> FusedProgram::RowsKeptByAll() const {
  std::vector<int64_t> kept(layers_.size() - 1, 1);
  for (const std::vector<Part>& parts : pieces_) {
    for (const Part& part : parts) {
      const std::vector<int64_t> of_part = RowsKept(windows_, part.steps);
      for (size_t i = 0; i < kept.size(); ++i) kept[i] = std::max(kept[i], of_part[i]);
    }
  }
  return kept;
}

// Of a product by panels; of a depthwise window [taps][channels].
void FusedProgram::PackWeights(Layer& layer, const float* weights) {
  const Convolution& convolution = layer.convolution;
  if (layer.kind == FusedKind::kPointwise) {
    Tiling tiling;
    tiling.depth = convolution.input_channels;
    tiling.packing = Packing{1, convolution.input_channels};
    for (const Panel& panel : layer.panels) tiling.panels.push_back({panel.weights, panel.first, panel.count, panel.first});
    float* packed = operands_.Allocate(PackedCount(tiling));
    Pack(tiling, weights, packed);
    layer.weights = packed;
    return;
  }
  const int64_t taps = convolution.window.kernel[0] * convolution.window.kernel[1];
  const int64_t channels = convolution.output_channels;
  float* packed = operands_.Allocate(taps * channels);
  for (int64_t channel = 0; channel < channels; ++channel) {
    for (int64_t tap = 0; tap < taps; ++tap) packed[tap * channels + channel] = weights[channel * taps + tap];
  }
  layer.weights = packed;
}

// Of each number of pixels that occurs.
Status FusedProgram::MakeKernels() {
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    const int64_t width = layer.convolution.output[1];
    if (layer.kind == FusedKind::kDepthwise) {
      COLLAGE_TRY_STATUS(MakeTiles(layer, width));
      continue;
    }
    if (layer.in_registers) continue;
    for (const std::vector<Part>& parts : pieces_) {
      for (const Part& part : parts) {
        for (const RowStep& step : part.steps) {
          for (int64_t row = step[i].first; row < step[i].last;) {
            const int64_t rows = RowsTogether(layer, layer.panels[0], row, step[i].last);
            COLLAGE_TRY_STATUS(MakeTiles(layer, rows * width));
            row += rows;
          }
        }
      }
    }
  }
  return {};
}

Status FusedProgram::MakeTiles(Layer& layer, int64_t pixels) {
  const auto at = static_cast<size_t>(pixels);
  if (tiles_.size() <= at) tiles_.resize(at + 1);
  if (tiles_[at].empty()) tiles_[at] = CutEvenly(pixels, kTilePixels, 1);
  if (layer.kind == FusedKind::kDepthwise) return {};
  constexpr size_t kNone = ~size_t{0};
  for (const auto& [first, count] : tiles_[at]) {
    std::map<int64_t, size_t> of_columns;  // panels of one width share their kernels
    for (Panel& panel : layer.panels) {
      panel.kernels.resize(kTilePixels + 1, kNone);
      size_t& kernel = panel.kernels[static_cast<size_t>(count)];
      if (kernel != kNone) continue;
      const auto [known, is_new] = of_columns.try_emplace(panel.count, kernels_.size());
      kernel = known->second;
      if (!is_new) continue;
      const int64_t result_stride = layer.tail.IsEmpty() ? panel.results.pixel : panel.count;
      kernels_.push_back(
          COLLAGE_TRY(MicroKernel::Make({count, panel.count, layer.convolution.input_channels,
                                         layer.convolution.window.stride[1] * panel.data.pixel, panel.count, result_stride})));
    }
  }
  return {};
}

int64_t FusedProgram::RowsTogether(const Layer& layer, const Panel& panel, int64_t row, int64_t last) {
  if (IsStrided(layer.convolution.window)) return 1;
  return std::min({last - row, panel.data.RowsFrom(row), panel.results.RowsFrom(row)});
}

void FusedProgram::Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const {
  const Convolution& first = layers_.front().convolution;
  const Convolution& last = layers_.back().convolution;
  for (const Part& part : pieces_[piece]) {
    const Memory memory{inputs, data_.In(inputs) + part.image * first.input_channels * first.input[0] * first.input[1], result,
                        part.image * last.output_channels * last.output[0] * last.output[1], scratch};
    for (const RowStep& step : part.steps) RunStep(step, memory);
  }
}

// Depthwise convolutions take a panel of channels from the product before while it is in the nearest caches.
void FusedProgram::RunStep(const RowStep& step, const Memory& memory) const {
  for (size_t begin = 0; begin < layers_.size();) {
    size_t end = begin + 1;
    while (end < layers_.size() && layers_[end].kind == FusedKind::kDepthwise) ++end;
    for (size_t panel = 0; panel < layers_[begin].panels.size(); ++panel) {
      for (size_t i = begin; i < end; ++i) {
        const Layer& layer = layers_[i];
        if (layer.kind == FusedKind::kPointwise && layer.in_registers) {
          MultiplyInRegisters(layer, layer.panels[panel], step[i], memory);
        } else if (layer.kind == FusedKind::kPointwise) {
          Multiply(layer, layer.panels[panel], step[i], memory);
        } else {
          Convolve(layer, layer.panels[panel], step[i], memory);
        }
      }
    }
    begin = end;
  }
}

void FusedProgram::Multiply(const Layer& layer, const Panel& panel, const RowSpan& rows, const Memory& memory) const {
  const Window& window = layer.convolution.window;
  const int64_t width = layer.convolution.output[1];
  const float* data = &layer == &layers_.front() ? memory.data : memory.scratch;
  float* result = IsLast(layer) ? memory.result : memory.scratch;
  float* tail = memory.scratch + tails_;
  for (int64_t row = rows.first; row < rows.last;) {
    const int64_t together = RowsTogether(layer, panel, row, rows.last);
    const float* pixels = data + panel.data.At(row * window.stride[0]);
    const int64_t results = panel.results.At(row) + (IsLast(layer) ? memory.image_result : 0);
    for (const auto& [first, count] : tiles_[static_cast<size_t>(together * width)]) {
      const TailTile tile{count, panel.count, results + first * panel.results.pixel, panel.results.pixel, panel.first};
      layer.tail.Prefetch(tile, memory.inputs);
      kernels_[panel.kernels[static_cast<size_t>(count)]](pixels + first * window.stride[1] * panel.data.pixel,
                                                          layer.weights + panel.weights,
                                                          layer.tail.IsEmpty() ? result + tile.result : tail);
      if (!layer.tail.IsEmpty()) layer.tail.Run(tile, memory.inputs, result, tail, slot_);
    }
    row += together;
  }
}

void FusedProgram::MultiplyInRegisters(const Layer& layer, const Panel& panel, const RowSpan& rows, const Memory& memory) const {
  const Window& window = layer.convolution.window;
  const BoundTail::InRegisters& tail = *layer.in_registers;
  const float* data = &layer == &layers_.front() ? memory.data : memory.scratch;
  float* result = IsLast(layer) ? memory.result + memory.image_result : memory.scratch;
  PixelProduct product{};
  product.data_pixel = window.stride[1] * panel.data.pixel;
  product.depth = layer.convolution.input_channels;
  product.weights = layer.weights + panel.weights;
  product.columns = panel.count;
  product.bias = tail.bias ? tail.bias->In(memory.inputs) + panel.first : nullptr;
  product.low = tail.bounds.low;
  product.high = tail.bounds.high;
  product.result_pixel = panel.results.pixel;
  for (int64_t row = rows.first; row < rows.last;) {
    const int64_t together = RowsTogether(layer, panel, row, rows.last);
    product.pixels = together * layer.convolution.output[1];
    product.data = data + panel.data.At(row * window.stride[0]);
    product.result = result + panel.results.At(row);
    product_(product);
    row += together;
  }
}

// What is the same for all rows of a panel.
DepthwiseRow FusedProgram::BeginRow(const Layer& layer, const Panel& panel, const Memory& memory) {
  const Window& window = layer.convolution.window;
  DepthwiseRow row{};
  row.data_pixel = panel.data.pixel;
  row.width = layer.convolution.input[1];
  row.taps = window.kernel[1];
  row.weight_stride = layer.convolution.output_channels;
  row.stride = window.stride[1];
  row.dilation = window.dilation[1];
  row.pad_begin = window.pad_begin[1];
  row.channels = panel.count;
  row.low = -std::numeric_limits<float>::infinity();
  row.high = std::numeric_limits<float>::infinity();
  row.result_pixel = HasTailOnTiles(layer) ? panel.count : panel.results.pixel;
  if (!layer.in_registers) return row;
  row.low = layer.in_registers->bounds.low;
  row.high = layer.in_registers->bounds.high;
  if (layer.in_registers->bias) row.bias = layer.in_registers->bias->In(memory.inputs) + panel.first;
  return row;
}

void FusedProgram::Convolve(const Layer& layer, const Panel& panel, const RowSpan& rows, const Memory& memory) const {
  const Convolution& convolution = layer.convolution;
  const Window& window = convolution.window;
  const float* data = &layer == &layers_.front() ? memory.data : memory.scratch;
  float* result = IsLast(layer) ? memory.result : memory.scratch;
  float* tail = memory.scratch + tails_;
  const std::pair<int64_t, int64_t> whole_row = {0, convolution.output[1]};
  const bool in_tiles = HasTailOnTiles(layer);
  const std::span<const std::pair<int64_t, int64_t>> tiles =
      in_tiles ? std::span(tiles_[static_cast<size_t>(convolution.output[1])]) : std::span(&whole_row, 1);
  DepthwiseRow part = BeginRow(layer, panel, memory);
  const float* window_rows[kMostWindowRows];
  part.rows = window_rows;
  for (int64_t row = rows.first; row < rows.last; ++row) {
    part.row_count = 0;
    for (int64_t r = 0; r < window.kernel[0]; ++r) {
      const int64_t data_row = row * window.stride[0] - window.pad_begin[0] + r * window.dilation[0];
      if (data_row < 0 || data_row >= convolution.input[0]) continue;
      if (part.row_count == 0) part.weights = layer.weights + panel.weights + r * part.taps * part.weight_stride;
      window_rows[part.row_count++] = data + panel.data.At(data_row);
    }
    const int64_t results = panel.results.At(row) + (IsLast(layer) ? memory.image_result : 0);
    for (const auto& [first, count] : tiles) {
      const TailTile tile{count, panel.count, results + first * panel.results.pixel, panel.results.pixel, panel.first};
      part.first = first;
      part.count = count;
      part.result = in_tiles ? tail : result + tile.result;
      if (in_tiles) layer.tail.Prefetch(tile, memory.inputs);
      depthwise_(part);
      if (in_tiles) layer.tail.Run(tile, memory.inputs, result, tail, slot_);
    }
  }
}

}  // namespace collage::xsmm
