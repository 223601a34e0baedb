#include <algorithm>

#include "collage/backend/xsmm/forms.h"
#include "collage/backend/xsmm/fused_program.h"

namespace collage::xsmm {
namespace {

// Half of the second-level cache of the smallest processors with AVX-512, in bytes: what may stay there beside weights, data and results.
constexpr size_t kCached = size_t{512} * 1024;

bool ReadsWhole(const Tail& tail) {
  const auto is_whole = [](const TailArgument& argument) { return argument.kind == TailArgument::Kind::kWhole; };
  return std::any_of(tail.steps.begin(), tail.steps.end(),
                     [&](const TailStep& step) { return is_whole(step.first) || is_whole(step.second) || is_whole(step.third); });
}

// Many rows a step read the weights seldom and make few tiles that are not full; few stay in the cache.
TuningParameter RowsParameter(const std::vector<Convolution>& convolutions, int64_t most) {
  int64_t rows = 1;
  while (rows * 2 <= most && FusedProgram::BytesBetween(convolutions, rows * 2) <= kCached) rows *= 2;
  TuningParameter parameter{"rows", {static_cast<int>(rows)}};
  // Processors differ fourfold in that cache.
  for (const int64_t other : {rows / 4, rows / 2, rows * 2, rows * 4}) {
    if (other >= 1 && other <= most) parameter.values.push_back(static_cast<int>(other));
  }
  return parameter;
}

}  // namespace

Result<std::vector<Form>> FusedForms(const Chain& chain, const InstructionSet& instructions) {
  std::vector<const OpSequence::Step*> steps;
  for (const Stage& stage : chain.before) {
    if (ReadsWhole(stage.tail)) return Fail("libxsmm: only behind the last convolution of a chain may a whole tensor be read");
    steps.push_back(stage.base);
  }
  steps.push_back(chain.base);
  std::vector<Convolution> convolutions;
  for (const OpSequence::Step* step : steps) {
    convolutions.push_back(COLLAGE_TRY(ReadConvolution(chain.TypeOf(step->inputs[0]), chain.TypeOf(step->inputs[1]), step->attributes)));
    COLLAGE_TRY(FusedKindOf(convolutions.back()));
    if (!chain.IsConstant(step->inputs[1])) return Fail("libxsmm: the weights of a convolution must be constant");
  }
  const Convolution& first = convolutions.front();
  const Convolution& last = convolutions.back();
  const auto make = [=](const Chain& of, const Form& self, int64_t rows, int threads) {
    return FusedProgram::Make(of, self, convolutions, instructions, rows, threads);
  };
  return std::vector<Form>{{"fused/acdb", LayoutOfImage("acdb", first.input_channels, first.input[0] * first.input[1]),
                            LayoutOfImage("acdb", last.output_channels, last.output[0] * last.output[1]),
                            RowsParameter(convolutions, last.output[0]), make}};
}

}  // namespace collage::xsmm
