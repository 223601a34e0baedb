#include <algorithm>
#include <iterator>
#include <utility>

#include "collage/backend/xsmm/forms.h"
#include "collage/backend/xsmm/winograd.h"

namespace collage::xsmm {
namespace {

struct Problem {
  int64_t images, inputs, height, width;  ///< of the data: N, C, H, W
  int64_t outputs, out_height, out_width;
  int64_t down, across;  ///< strides

  explicit Problem(const Convolution& of)
      : images(of.batch),
        inputs(of.input_channels),
        height(of.input[0]),
        width(of.input[1]),
        outputs(of.output_channels),
        out_height(of.output[0]),
        out_width(of.output[1]),
        down(of.window.stride[0]),
        across(of.window.stride[1]) {}

  [[nodiscard]] int64_t Pixels() const { return height * width; }
  [[nodiscard]] int64_t OutPixels() const { return out_height * out_width; }
  [[nodiscard]] bool IsStrided() const { return down != 1 || across != 1; }
};

// Rows of pixels whose data and results both lie at even distances: all of an image, or with strides one of its rows.
std::vector<Tiling::Rows> CutPixels(const Problem& problem, int64_t tile_rows, int64_t pixel, int64_t result_pixel) {
  if (!problem.IsStrided()) return CutRows(problem.OutPixels(), tile_rows, pixel, result_pixel);
  std::vector<Tiling::Rows> rows;
  for (int64_t y = 0; y < problem.out_height; ++y) {
    for (Tiling::Rows part : CutRows(problem.out_width, tile_rows, problem.across * pixel, result_pixel)) {
      part.offset += y * problem.down * problem.width * pixel;
      part.result += y * problem.out_width * result_pixel;
      rows.push_back(part);
    }
  }
  return rows;
}

std::vector<Tiling::Batch> Images(const Problem& problem) {
  std::vector<Tiling::Batch> images;
  for (int64_t n = 0; n < problem.images; ++n)
    images.push_back({n * problem.inputs * problem.Pixels(), 0, n * problem.outputs * problem.OutPixels()});
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
  tiling.depth = problem.inputs;
  tiling.kinds = {{problem.inputs, problem.across * problem.inputs, problem.outputs}};
  tiling.packing = Packing{1, problem.inputs};
  tiling.rows = CutPixels(problem, tile_rows, problem.inputs, problem.outputs);
  for (const auto& [first, count] : CutEvenly(problem.outputs, instructions.panel_columns, instructions.lanes))
    tiling.panels.push_back({first * problem.inputs, first, count, first});
  tiling.order = BetterOrder(tiling);
  return tiling;
}

// Channels in blocks of a vector: for each block of results, the sum of the products of all blocks of data.
Tiling Blocked(const Problem& problem, size_t data, size_t weight, int64_t block, int64_t tile_rows) {
  Tiling tiling = Begin(problem, data, weight);
  tiling.depth = block;
  Tiling::Kind kind{block, problem.across * block, block, {}, {}};
  tiling.packing = Packing{1, problem.inputs, {0}, {}};
  for (int64_t c = 0; c < problem.inputs; c += block) {
    kind.row_terms.push_back(c * problem.Pixels());
    kind.panel_terms.push_back(c);
    tiling.packing->term_offsets.push_back(c);
  }
  tiling.kinds = {std::move(kind)};
  tiling.rows = CutPixels(problem, tile_rows, block, block);
  for (int64_t c = 0; c < problem.outputs; c += block) tiling.panels.push_back({c * problem.inputs, c * problem.OutPixels(), block, c});
  tiling.order = BetterOrder(tiling);
  return tiling;
}

// Row-major: channels are rows and pixels are columns, so that the weights are read as they lie and the data are the panels.
Tiling Plain(const Problem& problem, size_t data, size_t weight, const InstructionSet& instructions, int64_t tile_rows) {
  Tiling tiling = Begin(problem, weight, data);
  for (Tiling::Batch& image : tiling.batches) std::swap(image.row, image.panel);
  tiling.depth = problem.inputs;
  tiling.kinds = {{problem.inputs, problem.inputs, problem.Pixels()}};
  tiling.panel_stride = problem.Pixels();
  tiling.channels_along_rows = true;
  for (const auto& [first, count] : CutEvenly(problem.outputs, tile_rows, 1))
    tiling.rows.push_back({first * problem.inputs, first * problem.Pixels(), count, first});
  for (const auto& [first, count] : CutEvenly(problem.Pixels(), instructions.panel_columns, instructions.lanes))
    tiling.panels.push_back({first, first, count});
  tiling.order = BetterOrder(tiling);
  return tiling;
}

std::vector<Form> PointwiseForms(const Chain& chain, const Problem& problem, const InstructionSet& instructions) {
  const size_t data = chain.base->inputs[0];
  const size_t weight = chain.base->inputs[1];
  const auto layout_in = [&](const char* tag) { return LayoutOfImage(tag, problem.inputs, problem.Pixels()); };
  const auto layout_out = [&](const char* tag) { return LayoutOfImage(tag, problem.outputs, problem.OutPixels()); };
  // As for products.
  constexpr int64_t kTileRows = 24;
  std::vector<Form> forms = {ProductForm("1x1/acdb", layout_in("acdb"), layout_out("acdb"), kTileRows,
                                         [=](int64_t tile_rows) { return ChannelsLast(problem, data, weight, instructions, tile_rows); })};
  // Of one pixel all layouts are one.
  if (problem.Pixels() == 1) return forms;
  const int64_t block = instructions.lanes;
  if (problem.inputs % block == 0 && problem.outputs % block == 0) {
    const std::string tag = "aBcd" + std::to_string(block) + "b";
    // One vector of channels and as many pixels as there are registers left: 28 of 32, and two tiles of 14 of AVX2's 16.
    constexpr int64_t kTilePixels = 28;
    forms.push_back(ProductForm("1x1/" + tag, layout_in(tag.c_str()), layout_out(tag.c_str()), kTilePixels,
                                [=](int64_t tile_rows) { return Blocked(problem, data, weight, block, tile_rows); }));
  }
  if (!problem.IsStrided()) {
    forms.push_back(ProductForm("1x1/plain", {}, {}, kTileRows,
                                [=](int64_t tile_rows) { return Plain(problem, data, weight, instructions, tile_rows); }));
  }
  return forms;
}

// Of what several algorithms compute, those that are not too much work beside the least.
Result<std::vector<Form>> SpatialForms(const Chain& chain, const Convolution& convolution, const InstructionSet& instructions) {
  // What shapes say is no closer to the time that kernels take.
  constexpr double kMostWork = 1.5;
  const auto sizes_of = [&](int64_t patch) {
    const auto along = [&](int64_t taps) {
      return taps == 1 ? WinogradSize() : WinogradSize{std::max<int64_t>(patch + 1 - taps, 1), taps};
    };
    return WinogradSizes{along(convolution.window.kernel[0]), along(convolution.window.kernel[1])};
  };
  const double direct_work = WinogradCost(convolution, sizes_of(0));
  double least_work = direct_work;
  std::vector<WinogradSizes> fast;
  for (const int64_t patch : {6, 4}) {
    const WinogradSizes sizes = sizes_of(patch);
    if (!MayBeWinograd(convolution, sizes, instructions)) continue;
    fast.push_back(sizes);
    least_work = std::min(least_work, WinogradCost(convolution, sizes));
  }
  std::vector<Form> forms;
  for (const WinogradSizes& sizes : fast) {
    if (WinogradCost(convolution, sizes) > kMostWork * least_work) continue;
    for (Form& form : WinogradForms(convolution, sizes, instructions)) forms.push_back(std::move(form));
  }
  if (direct_work > kMostWork * least_work) return forms;
  Result<std::vector<Form>> direct = DirectForms(chain, convolution, instructions);
  if (!direct && forms.empty()) return direct;
  if (direct) std::move(direct->begin(), direct->end(), std::back_inserter(forms));
  return forms;
}

}  // namespace

Result<std::vector<Form>> ConvolutionForms(const Chain& chain, const InstructionSet& instructions) {
  const OpSequence::Step& step = *chain.base;
  const Convolution convolution = COLLAGE_TRY(ReadConvolution(chain.TypeOf(step.inputs[0]), chain.TypeOf(step.inputs[1]), step.attributes));
  const Window& window = convolution.window;
  using Extents = std::array<int64_t, 2>;
  if (convolution.groups != 1) return Fail("libxsmm: a convolution in groups is no product");
  if (!chain.IsConstant(step.inputs[1])) return Fail("libxsmm: the weights of a convolution must be constant");
  if (window.kernel == Extents{1, 1} && window.pad_begin == Extents{0, 0} && window.pad_end == Extents{0, 0})
    return PointwiseForms(chain, Problem(convolution), instructions);
  return SpatialForms(chain, convolution, instructions);
}

}  // namespace collage::xsmm
