#include "collage/backend/written_out_activation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <unordered_map>

namespace collage {
namespace {

using Step = OpSequence::Step;

// An activation written out in several steps is recognised by what it computes: models spell GELU in half a dozen orders. Points from -8
// to 8 hold all of the known functions that is not nearly a straight line. Some thirty roundings to float32 are the tolerance: no
// spelling has more; the two GELUs are 200 times as far apart.
constexpr int kPoints = 257;
constexpr int kPointsInOne = 16;
constexpr double kTolerance = 2e-6;

struct KnownFunction {
  ActivationKind activation;
  double (*value)(double);
};

const std::array<KnownFunction, 5>& KnownFunctions() {
  static const std::array<KnownFunction, 5> known = {{
      {ActivationKind::kGeluByErf, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
      {ActivationKind::kGeluByTanh, [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
      {ActivationKind::kSwish, [](double x) { return x / (1 + std::exp(-x)); }},
      {ActivationKind::kHardSwish, [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }},
      {ActivationKind::kSquare, [](double x) { return x * x; }},
  }};
  return known;
}

Tensor SamplePoints() {
  Tensor points(TensorType{{kPoints}, DType::kFloat32});
  constexpr int kMiddle = kPoints / 2;
  for (int i = 0; i < kPoints; ++i) points.MutableData<float>()[i] = static_cast<float>(i - kMiddle) / kPointsInOne;
  return points;
}

std::optional<ActivationKind> FunctionThrough(const Tensor& points, const Tensor& values) {
  for (const KnownFunction& known : KnownFunctions()) {
    const auto agrees = [&](int i) {
      const double wanted = known.value(points.Data<float>()[i]);
      return std::abs(values.Data<float>()[i] - wanted) <= kTolerance * std::max(1.0, std::abs(wanted));
    };
    int agreeing = 0;
    while (agreeing < kPoints && agrees(agreeing)) ++agreeing;
    if (agreeing == kPoints) return known.activation;
  }
  return std::nullopt;
}

bool IsPointwiseOfScalars(const Step& step) {
  static constexpr std::array<std::string_view, 11> kOperators = {"add",  "subtract", "multiply", "divide", "power",   "erf",
                                                                  "tanh", "sigmoid",  "clip",     "exp",    "negative"};
  return step.outputs.size() == 1 && std::find(kOperators.begin(), kOperators.end(), step.op->name) != kOperators.end();
}

}  // namespace

std::optional<WrittenOutActivation> RecogniseActivation(const OpSequence& sequence, std::span<const Step> steps, size_t current) {
  constexpr size_t kMostSteps = 10;  // GELU by tanh, its power and its half written as products
  const Tensor points = SamplePoints();
  std::unordered_map<size_t, Tensor> values = {{current, points}};
  for (size_t i = 0; i < std::min(steps.size(), kMostSteps); ++i) {
    const Step& step = steps[i];
    if (!IsPointwiseOfScalars(step)) return std::nullopt;
    std::vector<Tensor> inputs;
    for (const size_t input : step.inputs) {
      const std::optional<double> scalar = ScalarOf(sequence, input);
      if (!scalar && !values.contains(input)) return std::nullopt;
      inputs.push_back(scalar ? Tensor::Scalar(*scalar, DType::kFloat32) : values.at(input));
    }
    std::vector<Tensor> outputs = {Tensor(points.type())};
    step.op->reference(inputs, step.attributes, outputs);
    values[step.outputs[0]] = outputs[0];
    if (i == 0 && step.inputs.size() == 1 && i + 1 == steps.size()) return std::nullopt;
    // Where it is read behind them, they are the begin of another one: a cube begins with a square.
    const std::optional<ActivationKind> found = FunctionThrough(points, outputs[0]);
    if (found && !IsReadIn(steps.subspan(i + 1), current)) return WrittenOutActivation{*found, i + 1, step.outputs[0]};
  }
  return std::nullopt;
}

std::optional<double> ScalarOf(const OpSequence& sequence, size_t value) {
  const std::optional<Tensor>& constant = sequence.values[value].constant;
  if (!constant || constant->ElementCount() != 1) return std::nullopt;
  return constant->ToDouble()[0];
}

bool IsReadIn(std::span<const Step> steps, size_t value) {
  return std::any_of(steps.begin(), steps.end(),
                     [&](const Step& step) { return std::find(step.inputs.begin(), step.inputs.end(), value) != step.inputs.end(); });
}

}  // namespace collage
