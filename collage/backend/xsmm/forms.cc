#include "collage/backend/xsmm/forms.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "collage/backend/xsmm/panel_loops.h"
#include "collage/backend/xsmm/tile_program.h"
#include "collage/op/integer_weights.h"

namespace collage::xsmm {
namespace {

constexpr std::array<std::string_view, 6> kBases = {"nn.dense",        "nn.matmul", "nn.batch_matmul",
                                                    "nn.matmul_nbits", "nn.conv2d", "nn.conv3d"};

bool IsBase(const OpSequence::Step& step) { return std::find(kBases.begin(), kBases.end(), step.op->name) != kBases.end(); }

bool IsConvolution(const OpSequence::Step& step) { return step.op->name == "nn.conv2d" || step.op->name == "nn.conv3d"; }

// Where the first step makes the weights of the second, a product, of integers as WithRoundedWeights writes them.
std::optional<IntegerWeights> IntegerWeightsOf(const OpSequence& sequence) {
  if (sequence.steps.size() < 2 || sequence.steps[0].op->name != "qnn.dequantize") return std::nullopt;
  const OpSequence::Step& step = sequence.steps[0];
  const OpSequence::Step& product = sequence.steps[1];
  const auto constant = [&](size_t input) -> const std::optional<Tensor>& { return sequence.values[step.inputs[input]].constant; };
  const bool is_product = product.op->name == "nn.dense" || product.op->name == "nn.matmul";
  if (!is_product || product.inputs[1] != step.outputs[0] || !constant(0) || !constant(1) || !constant(2)) return std::nullopt;
  if (constant(0)->type().shape.size() != 2 || constant(0)->dtype() != DType::kInt8 || constant(1)->dtype() != DType::kFloat32)
    return std::nullopt;
  const size_t axis = ChannelsOfWeights(*product.op, product.attributes);
  const std::vector<int64_t> zeros = constant(2)->ToInt64();
  const bool is_symmetric = std::all_of(zeros.begin(), zeros.end(), [](int64_t zero) { return zero == 0; });
  const bool is_by_channel = constant(1)->shape().size() == 1 && step.attributes.Int("axis", -1).value_or(-1) == static_cast<int64_t>(axis);
  if (!is_symmetric || !is_by_channel) return std::nullopt;
  return IntegerWeights{step.inputs[0], step.inputs[1]};
}

// Of what the steps from `first` on read.
Status CheckTensors(const OpSequence& sequence, size_t first) {
  if (sequence.steps.empty()) return Fail("libxsmm: nothing is computed");
  std::vector<bool> is_apart(sequence.values.size(), false);
  for (size_t step = 0; step < first; ++step) {
    for (const size_t input : sequence.steps[step].inputs) is_apart[input] = true;
  }
  for (const OpSequence::Step& step : sequence.steps) {
    if (step.op->name == "nn.matmul_nbits") is_apart[step.inputs[1]] = is_apart[step.inputs[3]] = true;
  }
  for (size_t i = 0; i < sequence.values.size(); ++i) {
    const OpSequence::Value& value = sequence.values[i];
    if (is_apart[i]) continue;
    if (value.type.dtype != DType::kFloat32) return Fail("libxsmm: float32 is supported, not " + std::string(Name(value.type.dtype)));
    if (value.type.ElementCount() == 0) return Fail("libxsmm: a tensor has no elements");
  }
  return {};
}

// A tensor that enters twice has one layout only.
bool IsConsistent(const Chain& chain, const Form& form) {
  if (form.data == form.result) return true;
  const size_t data = chain.Data();
  const auto reads = [&](const TailArgument& argument) { return argument.kind == TailArgument::Kind::kWhole && argument.value == data; };
  return std::none_of(chain.tail.steps.begin(), chain.tail.steps.end(),
                      [&](const TailStep& step) { return reads(step.first) || reads(step.second) || reads(step.third); });
}

// One base and the steps up to the next.
Result<Stage> ParseStage(const OpSequence& sequence, std::span<const OpSequence::Step> steps) {
  const OpSequence::Step& base = steps[0];
  const size_t rank = sequence.values[base.outputs[0]].type.shape.size();
  if (rank == 0) return Fail("libxsmm: matrices are wanted");
  const size_t channel = IsConvolution(base) ? 1 : rank - 1;
  return Stage{&base, COLLAGE_TRY(ParseTail(sequence, steps.subspan(1), base.outputs[0], channel))};
}

// What a stage computes is seen by the next one only, and by that as its data.
Status CheckLinks(const OpSequence& sequence, const std::vector<Stage>& stages) {
  std::unordered_set<size_t> computed;
  for (const OpSequence::Step& step : sequence.steps) computed.insert(step.outputs.begin(), step.outputs.end());
  for (size_t i = 0; i < stages.size(); ++i) {
    if (!IsConvolution(*stages[i].base)) return Fail("libxsmm: only convolutions are computed one after another");
    for (const TailStep& step : stages[i].tail.steps) {
      for (const TailArgument* argument : {&step.first, &step.second, &step.third}) {
        const bool is_tensor = argument->kind != TailArgument::Kind::kSlot && argument->kind != TailArgument::Kind::kNone;
        if (is_tensor && computed.contains(argument->value)) return Fail("libxsmm: what one convolution computes is read behind another");
      }
    }
    if (i == 0) continue;
    const size_t data = stages[i].base->inputs[0];
    size_t uses = 0;
    for (const OpSequence::Step& step : sequence.steps)
      uses += static_cast<size_t>(std::count(step.inputs.begin(), step.inputs.end(), data));
    const OpSequence::Step* end = stages[i].base - 1;
    if (end->outputs[0] != data || uses != 1) return Fail("libxsmm: a convolution does not read the one before, or others read that, too");
  }
  return {};
}

}  // namespace

Result<Chain> ParseChain(const OpSequence& sequence) {
  const std::optional<IntegerWeights> weights = IntegerWeightsOf(sequence);
  const size_t first = weights ? 1 : 0;
  COLLAGE_TRY_STATUS(CheckTensors(sequence, first));
  if (!IsBase(sequence.steps[first])) return Fail("libxsmm: " + sequence.steps[first].op->name + " is no product");
  std::vector<Stage> stages;
  for (std::span<const OpSequence::Step> rest = std::span(sequence.steps).subspan(first); !rest.empty();) {
    const auto next = static_cast<size_t>(std::find_if(rest.begin() + 1, rest.end(), IsBase) - rest.begin());
    stages.push_back(COLLAGE_TRY(ParseStage(sequence, rest.first(next))));
    rest = rest.subspan(next);
  }
  if (sequence.results.size() != 1 || sequence.results[0] != sequence.steps.back().outputs[0])
    return Fail("libxsmm: the result is not the end of the chain");
  if (stages.size() > 1) COLLAGE_TRY_STATUS(CheckLinks(sequence, stages));
  Stage last = std::move(stages.back());
  stages.pop_back();
  return Chain{&sequence, last.base, std::move(last.tail), std::move(stages), weights};
}

TapRange TapsAt(const VolumeConvolution& convolution, size_t dimension, int64_t position) {
  const VolumeWindow& window = convolution.window;
  const int64_t dilation = window.dilation[dimension];
  const int64_t taps = window.kernel[dimension];
  // Of the first tap.
  const int64_t begin = position * window.stride[dimension] - window.pad_begin[dimension];
  const int64_t first = begin >= 0 ? 0 : std::min((-begin + dilation - 1) / dilation, taps);
  const int64_t beyond = convolution.input[dimension] - begin;
  const int64_t end = beyond <= 0 ? 0 : std::min((beyond + dilation - 1) / dilation, taps);
  return {first, std::max<int64_t>(end - first, 0)};
}

Result<std::vector<Form>> Forms(const Chain& chain, const InstructionSet& instructions) {
  std::vector<Form> forms = COLLAGE_TRY(!chain.before.empty()        ? FusedForms(chain, instructions)
                                        : IsConvolution(*chain.base) ? ConvolutionForms(chain, instructions)
                                                                     : ProductForms(chain, instructions));
  std::erase_if(forms, [&](const Form& form) { return !IsConsistent(chain, form); });
  if (forms.empty()) return Fail("libxsmm: a tensor would have to enter in two layouts");
  return forms;
}

Form ProductForm(std::string name, Layout data, Layout result, int64_t tile_rows, std::function<Tiling(int64_t tile_rows)> tile) {
  TuningParameter size{"tile_rows", {static_cast<int>(tile_rows)}};
  const size_t tiles = tile(tile_rows).TileCount();
  // Below 8 rows a call costs too much, above 32 the rows of common depths leave the first-level cache.
  for (const int rows : {8, 12, 16, 24, 32}) {
    // A matrix of few rows is cut alike whatever is said.
    if (rows != tile_rows && tile(rows).TileCount() != tiles) size.values.push_back(rows);
  }
  const auto make = [tile = std::move(tile)](const Chain& chain, const Form& form, int64_t rows, int threads) {
    return TileProgram::Make(chain, form, tile(rows), threads);
  };
  return {std::move(name), std::move(data), std::move(result), std::move(size), make};
}

std::optional<Form> FetchedForm(std::string name, Layout data, Layout result, std::function<Tiling(int64_t tile_rows)> tile) {
  // Of a panel of 64 columns 24 KB, half of the first-level cache that processors with AVX-512 have. 64 and 128 took as long in a loop over
  // products with cold weights, 32 and 256 longer.
  constexpr int64_t kDepth = 96;
  // Some rows pass by each part, and a tile's results stay in that cache beside it.
  constexpr int64_t kRows = 64;
  // A weight is multiplied so often in the time that it takes to come: fetching it gains 4% at 197 rows, 13% at 64.
  constexpr int64_t kMostRows = 256;
  const Tiling whole = tile(kMostRows);
  const bool is_wanted = whole.packing && whole.order == Tiling::Order::kPanels && whole.kinds.size() == 1 && whole.rows.size() == 1 &&
                         whole.kinds[0].row_terms.size() == 1 && whole.rows[0].count > kPanelRows && whole.depth > kDepth;
  if (!is_wanted) return std::nullopt;
  TuningParameter size{"tile_rows", {static_cast<int>(kRows)}};
  for (const int rows : {32, 96, 128}) {
    if (tile(rows).TileCount() != tile(kRows).TileCount()) size.values.push_back(rows);
  }
  const auto make = [tile = std::move(tile)](const Chain& chain, const Form& form, int64_t rows, int threads) {
    Tiling tiling = tile(rows);
    tiling.fetched_depth = kDepth;
    return TileProgram::Make(chain, form, std::move(tiling), threads);
  };
  return Form{std::move(name), std::move(data), std::move(result), std::move(size), make};
}

Layout LayoutOfImage(const std::string& tag, int64_t channels, int64_t pixels) {
  return pixels == 1 || channels == 1 ? Layout() : Layout::Of(tag);
}

std::vector<Tiling::Rows> CutRows(int64_t rows, int64_t tile_rows, int64_t row_stride, int64_t result_stride) {
  std::vector<Tiling::Rows> cut;
  for (const auto& [first, count] : CutEvenly(rows, tile_rows, 1)) cut.push_back({first * row_stride, first * result_stride, count});
  return cut;
}

Tiling::Order BetterOrder(int64_t row_elements, int64_t panel_elements) {
  // Half of the second-level cache of the smallest processors with AVX-512, in elements: what may stay there beside what streams by.
  constexpr int64_t kCached = int64_t{512} * 1024 / static_cast<int64_t>(sizeof(float));
  // By panels all rows are read once for each panel, which is wider than a tile of rows is high; so that is the rule, unless
  // the rows do not stay in the cache and the panels do.
  return row_elements > kCached && panel_elements <= kCached ? Tiling::Order::kRows : Tiling::Order::kPanels;
}

Tiling::Order BetterOrder(const Tiling& tiling) {
  int64_t rows = 0;
  int64_t columns = 0;
  for (const Tiling::Rows& part : tiling.rows) rows += part.count;
  for (const Tiling::Panel& panel : tiling.panels) columns += panel.count;
  const Tiling::Kind& kind = tiling.kinds.front();
  const int64_t depth = kind.depth * static_cast<int64_t>(kind.row_terms.size());
  return BetterOrder(rows * depth, columns * depth);
}

}  // namespace collage::xsmm
