#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "collage/backend/xsmm/forms.h"
#include "collage/backend/xsmm/small_groups.h"
#include "collage/backend/xsmm/strassen.h"
#include "collage/backend/xsmm/winograd.h"
#include "collage/op/window.h"

namespace collage::xsmm {
namespace {

using Problem = SpatialConvolution;

int64_t Pixels(const Triple& extents) { return extents[0] * extents[1] * extents[2]; }

bool IsStrided(const Problem& problem) { return problem.window.stride != Triple{1, 1, 1}; }

// Rows of pixels whose data and results both lie at even distances: all of an image, or with strides one of its rows.
std::vector<Tiling::Rows> CutPixels(const Problem& problem, int64_t tile_rows, int64_t pixel, int64_t result_pixel) {
  if (!IsStrided(problem)) return CutRows(Pixels(problem.output), tile_rows, pixel, result_pixel);
  const auto [stride_deep, stride_down, stride_across] = problem.window.stride;
  std::vector<Tiling::Rows> rows;
  for (int64_t line = 0; line < problem.output[0] * problem.output[1]; ++line) {
    const int64_t z = line / problem.output[1] * stride_deep;
    const int64_t y = line % problem.output[1] * stride_down;
    for (Tiling::Rows part : CutRows(problem.output[2], tile_rows, stride_across * pixel, result_pixel)) {
      part.offset += (z * problem.input[1] + y) * problem.input[2] * pixel;
      part.result += line * problem.output[2] * result_pixel;
      rows.push_back(part);
    }
  }
  return rows;
}

std::vector<Tiling::Batch> Images(const Problem& problem) {
  std::vector<Tiling::Batch> images;
  for (int64_t n = 0; n < problem.batch; ++n)
    images.push_back({n * problem.input_channels * Pixels(problem.input), 0, n * problem.output_channels * Pixels(problem.output)});
  return images;
}

Tiling Begin(const Problem& problem, size_t data, size_t weight) {
  Tiling tiling;
  tiling.batches = Images(problem);
  tiling.row_value = data;
  tiling.panel_value = weight;
  return tiling;
}

// Channels last: a product of pixels and weights.
Tiling ChannelsLast(const Problem& problem, size_t data, size_t weight, const InstructionSet& instructions, int64_t tile_rows) {
  Tiling tiling = Begin(problem, data, weight);
  tiling.depth = problem.input_channels;
  tiling.kinds = {{problem.input_channels, problem.window.stride[2] * problem.input_channels, problem.output_channels}};
  tiling.packing = Packing{1, problem.input_channels};
  tiling.rows = CutPixels(problem, tile_rows, problem.input_channels, problem.output_channels);
  for (const auto& [first, count] : CutEvenly(problem.output_channels, instructions.panel_columns, instructions.lanes))
    tiling.panels.push_back({first * problem.input_channels, first, count, first});
  tiling.order = BetterOrder(tiling);
  return tiling;
}

// Channels in blocks of a vector: for each block of results, the sum of the products of all blocks of data.
Tiling Blocked(const Problem& problem, size_t data, size_t weight, int64_t block, int64_t tile_rows) {
  Tiling tiling = Begin(problem, data, weight);
  tiling.depth = block;
  Tiling::Kind kind{block, problem.window.stride[2] * block, block, {}, {}};
  tiling.packing = Packing{1, problem.input_channels, {0}, {}};
  for (int64_t c = 0; c < problem.input_channels; c += block) {
    kind.row_terms.push_back(c * Pixels(problem.input));
    kind.panel_terms.push_back(c);
    tiling.packing->term_offsets.push_back(c);
  }
  tiling.kinds = {std::move(kind)};
  tiling.rows = CutPixels(problem, tile_rows, block, block);
  for (int64_t c = 0; c < problem.output_channels; c += block)
    tiling.panels.push_back({c * problem.input_channels, c * Pixels(problem.output), block, c});
  tiling.order = BetterOrder(tiling);
  return tiling;
}

// Row-major: channels are rows and pixels are columns, so that the weights are read as they lie and the data are the panels.
Tiling Plain(const Problem& problem, size_t data, size_t weight, const InstructionSet& instructions, int64_t tile_rows) {
  Tiling tiling = Begin(problem, weight, data);
  for (Tiling::Batch& image : tiling.batches) std::swap(image.row, image.panel);
  tiling.depth = problem.input_channels;
  tiling.kinds = {{problem.input_channels, problem.input_channels, Pixels(problem.input)}};
  tiling.panel_stride = Pixels(problem.input);
  tiling.channels_along_rows = true;
  for (const auto& [first, count] : CutEvenly(problem.output_channels, tile_rows, 1))
    tiling.rows.push_back({first * problem.input_channels, first * Pixels(problem.input), count, first});
  for (const auto& [first, count] : CutEvenly(Pixels(problem.input), instructions.panel_columns, instructions.lanes))
    tiling.panels.push_back({first, first, count});
  tiling.order = BetterOrder(tiling);
  return tiling;
}

// Channels last, where the pixels of all images follow one another.
StrassenProblem ForStrassen(const Problem& problem) {
  return {problem.batch * Pixels(problem.output), problem.input_channels, problem.output_channels, 1, problem.input_channels};
}

std::vector<Form> PointwiseForms(const Chain& chain, const Problem& problem, const InstructionSet& instructions) {
  const size_t data = chain.base->inputs[0];
  const size_t weight = chain.base->inputs[1];
  const auto layout_in = [&](const std::string& tag) { return LayoutOfImage(tag, problem.input_channels, Pixels(problem.input)); };
  const auto layout_out = [&](const std::string& tag) { return LayoutOfImage(tag, problem.output_channels, Pixels(problem.output)); };
  const std::string last = problem.LastTag();
  const auto channels_last = [=](int64_t tile_rows) { return ChannelsLast(problem, data, weight, instructions, tile_rows); };
  std::vector<Form> forms = {ProductForm("1x1/" + last, layout_in(last), layout_out(last), kTileRows, channels_last)};
  if (std::optional<Form> fetched = FetchedForm("fetched/" + last, layout_in(last), layout_out(last), channels_last))
    forms.push_back(std::move(*fetched));
  if (!IsStrided(problem) && IsStrassenWorthwhile(ForStrassen(problem), instructions))
    forms.push_back(StrassenForm("strassen/" + last, layout_in(last), layout_out(last), ForStrassen(problem), instructions));
  // Of one pixel all layouts are one.
  if (Pixels(problem.input) == 1) return forms;
  const int64_t block = instructions.lanes;
  if (problem.input_channels % block == 0 && problem.output_channels % block == 0) {
    const std::string tag = problem.BlockedTag(block);
    // One vector of channels and as many pixels as there are registers left: 28 of 32, and two tiles of 14 of AVX2's 16.
    constexpr int64_t kTilePixels = 28;
    forms.push_back(ProductForm("1x1/" + tag, layout_in(tag), layout_out(tag), kTilePixels,
                                [=](int64_t tile_rows) { return Blocked(problem, data, weight, block, tile_rows); }));
  }
  if (!IsStrided(problem)) {
    forms.push_back(ProductForm("1x1/plain", {}, {}, kTileRows,
                                [=](int64_t tile_rows) { return Plain(problem, data, weight, instructions, tile_rows); }));
  }
  return forms;
}

// Of what several algorithms compute, those that are not too much work beside the least.
Result<std::vector<Form>> WindowForms(const Chain& chain, const Problem& problem, const InstructionSet& instructions) {
  // Of all shapes of bench_micro_kernels, that at which the fastest has most beside the least work has 1.29 times as much.
  constexpr double kMostWork = 1.5;
  const auto sizes_of = [&](int64_t patch) {
    const auto along = [&](int64_t taps) {
      return taps == 1 ? WinogradSize() : WinogradSize{std::max<int64_t>(patch + 1 - taps, 1), taps};
    };
    return WinogradSizes{along(problem.window.kernel[1]), along(problem.window.kernel[2])};
  };
  const double direct_work = WinogradWork(problem, sizes_of(0));
  double least_work = direct_work;
  std::vector<WinogradSizes> fast;
  for (const int64_t patch : {6, 4}) {
    const WinogradSizes sizes = sizes_of(patch);
    if (!MayBeWinograd(problem, sizes, instructions)) continue;
    fast.push_back(sizes);
    least_work = std::min(least_work, WinogradWork(problem, sizes));
  }
  std::vector<Form> forms;
  for (const WinogradSizes& sizes : fast) {
    if (WinogradWork(problem, sizes) > kMostWork * least_work) continue;
    for (Form& form : WinogradForms(problem, sizes, instructions)) forms.push_back(std::move(form));
  }
  if (direct_work > kMostWork * least_work) return forms;
  Result<std::vector<Form>> direct = DirectForms(chain, problem, instructions);
  if (!direct && forms.empty()) return direct;
  if (direct) std::move(direct->begin(), direct->end(), std::back_inserter(forms));
  return forms;
}

Result<Problem> ReadProblem(const Chain& chain) {
  const OpSequence::Step& step = *chain.base;
  const TensorType& data = chain.TypeOf(step.inputs[0]);
  const TensorType& weight = chain.TypeOf(step.inputs[1]);
  if (step.op->name == "nn.conv3d")
    return Problem{COLLAGE_TRY(ReadVolumeConvolution(data, weight, step.attributes, /*transposed=*/false)), true};
  const Convolution plane = COLLAGE_TRY(ReadConvolution(data, weight, step.attributes));
  const auto deep = [](const std::array<int64_t, 2>& extents, int64_t depth) { return Triple{depth, extents[0], extents[1]}; };
  const VolumeWindow window{deep(plane.window.kernel, 1), deep(plane.window.stride, 1), deep(plane.window.dilation, 1),
                            deep(plane.window.pad_begin, 0), deep(plane.window.pad_end, 0)};
  return Problem{
      {plane.batch, plane.input_channels, plane.output_channels, plane.groups, deep(plane.input, 1), deep(plane.output, 1), window}, false};
}

}  // namespace

Result<std::vector<Form>> ConvolutionForms(const Chain& chain, const InstructionSet& instructions) {
  const Problem problem = COLLAGE_TRY(ReadProblem(chain));
  const VolumeWindow& window = problem.window;
  if (!chain.IsConstant(chain.base->inputs[1])) return Fail("libxsmm: the weights of a convolution must be constant");
  // The library's products of fewer columns leave the rest of a vector empty.
  if (problem.groups != 1 && (problem.input_channels / problem.groups % instructions.lanes != 0 ||
                              problem.output_channels / problem.groups % instructions.lanes != 0))
    return SmallGroupsForms(problem, instructions);
  if (problem.groups == 1 && window.Taps() == 1 && window.pad_begin == Triple{0, 0, 0} && window.pad_end == Triple{0, 0, 0})
    return PointwiseForms(chain, problem, instructions);
  return WindowForms(chain, problem, instructions);
}

}  // namespace collage::xsmm
