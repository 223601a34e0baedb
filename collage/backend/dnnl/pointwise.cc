#include "collage/backend/dnnl/pointwise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace collage::dnnl_backend {
namespace {

using dnnl::algorithm;
using Step = OpSequence::Step;

PostOp Eltwise(algorithm kind, double alpha = 0, double beta = 0) {
  return {kind, static_cast<float>(alpha), static_cast<float>(beta), std::nullopt};
}

std::optional<double> ScalarOf(const OpSequence& sequence, size_t value) {
  const std::optional<Tensor>& constant = sequence.values[value].constant;
  if (!constant || constant->ElementCount() != 1) return std::nullopt;
  return constant->ToDouble()[0];
}

std::optional<PostOp> Activation(const Step& step) {
  static const std::unordered_map<std::string_view, PostOp> table = {
      {"nn.relu", Eltwise(algorithm::eltwise_relu)},
      {"sigmoid", Eltwise(algorithm::eltwise_logistic)},
      {"tanh", Eltwise(algorithm::eltwise_tanh)},
      {"exp", Eltwise(algorithm::eltwise_exp)},
      {"log", Eltwise(algorithm::eltwise_log)},
      {"sqrt", Eltwise(algorithm::eltwise_sqrt)},
      {"abs", Eltwise(algorithm::eltwise_abs)},
      {"negative", Eltwise(algorithm::eltwise_linear, -1)},
      {"rsqrt", Eltwise(algorithm::eltwise_pow, 1, -0.5)},
  };
  const std::string& name = step.op->name;
  if (name == "nn.leaky_relu") return Eltwise(algorithm::eltwise_relu, step.attributes.Double("alpha", 0.01).value_or(0.01));
  if (name == "clip") {
    const Result<double> low = step.attributes.Double("a_min", 0);
    const Result<double> high = step.attributes.Double("a_max", 0);
    return low && high ? std::optional(Eltwise(algorithm::eltwise_clip, *low, *high)) : std::nullopt;
  }
  const auto at = table.find(name);
  return at == table.end() ? std::nullopt : std::optional(at->second);
}

// Arithmetic with a scalar: linear is alpha * x + beta, pow is alpha * x ^ beta.
std::optional<PostOp> WithScalar(std::string_view name, bool scalar_first, double scalar) {
  if (name == "add") return Eltwise(algorithm::eltwise_linear, 1, scalar);
  if (name == "multiply") return Eltwise(algorithm::eltwise_linear, scalar, 0);
  if (name == "subtract")
    return scalar_first ? Eltwise(algorithm::eltwise_linear, -1, scalar) : Eltwise(algorithm::eltwise_linear, 1, -scalar);
  if (name == "divide")
    return scalar_first ? Eltwise(algorithm::eltwise_pow, scalar, -1) : Eltwise(algorithm::eltwise_linear, 1 / scalar, 0);
  if (name == "power" && !scalar_first) {
    return scalar == 2 ? Eltwise(algorithm::eltwise_square) : Eltwise(algorithm::eltwise_pow, 1, scalar);
  }
  return std::nullopt;
}

std::optional<PostOp> WithTensor(std::string_view name, bool current_first, size_t operand) {
  static const std::unordered_map<std::string_view, std::pair<algorithm, bool>> table = {
      {"add", {algorithm::binary_add, true}},     {"multiply", {algorithm::binary_mul, true}},  {"maximum", {algorithm::binary_max, true}},
      {"minimum", {algorithm::binary_min, true}}, {"subtract", {algorithm::binary_sub, false}}, {"divide", {algorithm::binary_div, false}},
  };
  const auto at = table.find(name);
  if (at == table.end() || (!current_first && !at->second.second)) return std::nullopt;
  return PostOp{at->second.first, 0, 0, operand};
}

std::optional<PostOp> SingleStep(const OpSequence& sequence, const Step& step, size_t current) {
  if (step.inputs.size() == 1) return step.inputs[0] == current ? Activation(step) : std::nullopt;
  // A step that changes the shape of what flows would broadcast it, which a post-operation cannot.
  const Shape& shape = sequence.values[step.outputs[0]].type.shape;
  if (step.inputs.size() != 2 || sequence.values[current].type.shape != shape) return std::nullopt;
  const bool first = step.inputs[0] == current;
  const size_t other = step.inputs[first ? 1 : 0];
  if (other == current || (!first && step.inputs[1] != current)) return std::nullopt;
  if (const std::optional<double> scalar = ScalarOf(sequence, other)) {
    if (const std::optional<PostOp> post_op = WithScalar(step.op->name, !first, *scalar)) return post_op;
  }
  return WithTensor(step.op->name, first, other);
}

// An activation written out in several steps is recognised by what it computes: models spell GELU in half a dozen orders. The
// points lie closer where the known functions differ most, and none of them agrees with another within the tolerance.
constexpr int kPoints = 257;
constexpr double kTolerance = 2e-6;

struct KnownFunction {
  PostOp post_op;
  double (*value)(double);
};

const std::array<KnownFunction, 5>& KnownFunctions() {
  static const std::array<KnownFunction, 5> known = {{
      {Eltwise(algorithm::eltwise_gelu_erf), [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
      {Eltwise(algorithm::eltwise_gelu_tanh),
       [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
      {Eltwise(algorithm::eltwise_swish, 1), [](double x) { return x / (1 + std::exp(-x)); }},
      {Eltwise(algorithm::eltwise_hardswish), [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }},
      {Eltwise(algorithm::eltwise_square), [](double x) { return x * x; }},
  }};
  return known;
}

Tensor SamplePoints() {
  Tensor points(TensorType{{kPoints}, DType::kFloat32});
  constexpr int kMiddle = kPoints / 2;
  for (int i = 0; i < kPoints; ++i) points.MutableData<float>()[i] = static_cast<float>(i - kMiddle) / 16;
  return points;
}

std::optional<PostOp> FunctionThrough(const Tensor& points, const Tensor& values) {
  for (const KnownFunction& known : KnownFunctions()) {
    const auto agrees = [&](int i) {
      const double wanted = known.value(points.Data<float>()[i]);
      return std::abs(values.Data<float>()[i] - wanted) <= kTolerance * std::max(1.0, std::abs(wanted));
    };
    int agreeing = 0;
    while (agreeing < kPoints && agrees(agreeing)) ++agreeing;
    if (agreeing == kPoints) return known.post_op;
  }
  return std::nullopt;
}

bool IsPointwiseOfScalars(const Step& step) {
  static constexpr std::array<std::string_view, 11> kOperators = {"add",  "subtract", "multiply", "divide", "power",   "erf",
                                                                  "tanh", "sigmoid",  "clip",     "exp",    "negative"};
  return step.outputs.size() == 1 && std::find(kOperators.begin(), kOperators.end(), step.op->name) != kOperators.end();
}

std::optional<Pointwise> WrittenOut(const OpSequence& sequence, std::span<const Step> steps, size_t current) {
  constexpr size_t kMostSteps = 10;
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
    if (const std::optional<PostOp> found = FunctionThrough(points, outputs[0])) return Pointwise{*found, i + 1, step.outputs[0]};
  }
  return std::nullopt;
}

bool UsedAfter(std::span<const Step> steps, size_t value) {
  return std::any_of(steps.begin(), steps.end(),
                     [&](const Step& step) { return std::find(step.inputs.begin(), step.inputs.end(), value) != step.inputs.end(); });
}

}  // namespace

std::optional<Pointwise> RecognisePointwise(const OpSequence& sequence, std::span<const Step> steps, size_t current) {
  if (!UsedAfter(steps.subspan(1), current)) {
    if (std::optional<PostOp> post_op = SingleStep(sequence, steps[0], current)) return Pointwise{*post_op, 1, steps[0].outputs[0]};
  }
  const std::optional<Pointwise> found = WrittenOut(sequence, steps, current);
  // What the region computed on its way must not be wanted outside of it.
  if (!found || UsedAfter(steps.subspan(found->steps), current)) return std::nullopt;
  return found;
}

}  // namespace collage::dnnl_backend
