#include "collage/op/quantisation_steps.h"

#include <algorithm>

namespace collage {
namespace {

struct Quantised {
  double scale = 0;
  bool is_integer = false;  // the value counts steps of that scale
};

double LargestScale(const OpSequence& sequence, const OpSequence::Step& step, const std::unordered_map<const ExprNode*, double>& scales) {
  const std::optional<Tensor>& scale = sequence.values[step.inputs[1]].constant;
  const auto seen = scales.find(step.call.get());
  double largest = seen == scales.end() ? 0 : seen->second;
  if (!scale) return largest;
  for (const double one : scale->ToDouble()) largest = std::max(largest, one);
  return largest;
}

}  // namespace

std::vector<double> QuantisationSteps(const OpSequence& sequence, const std::unordered_map<const ExprNode*, double>& scales) {
  std::vector<Quantised> values(sequence.values.size());
  for (const OpSequence::Step& step : sequence.steps) {
    Quantised made;
    for (const size_t input : step.inputs) {
      made.scale = std::max(made.scale, values[input].scale);
      made.is_integer |= values[input].is_integer;
    }
    // Other arithmetic on such integers must be exact: its results are no quantised values.
    made.is_integer &= step.op->is_within_arguments;
    if (step.op->name == "qnn.quantize") made = {LargestScale(sequence, step, scales), true};
    for (const size_t output : step.outputs) values[output] = made;
  }
  std::vector<double> steps;
  for (const size_t result : sequence.results) {
    const bool is_float = IsFloatingPoint(sequence.values[result].type.dtype);
    steps.push_back(is_float ? values[result].scale : values[result].is_integer ? 1 : 0);
  }
  return steps;
}

}  // namespace collage
