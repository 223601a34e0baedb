#include "collage/backend/dnnl/pointwise.h"

#include <string_view>
#include <unordered_map>
#include <utility>

#include "collage/backend/written_out_activation.h"

namespace collage::dnnl_backend {
namespace {

using dnnl::algorithm;
using Step = OpSequence::Step;

PostOp Eltwise(algorithm kind, double alpha = 0, double beta = 0) {
  return {kind, static_cast<float>(alpha), static_cast<float>(beta), std::nullopt};
}

std::optional<PostOp> ActivationOf(const Step& step) {
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
  if (step.inputs.size() == 1) return step.inputs[0] == current ? ActivationOf(step) : std::nullopt;
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

PostOp PostOpOf(ActivationKind activation) {
  switch (activation) {
    case ActivationKind::kGeluByErf:
      return Eltwise(algorithm::eltwise_gelu_erf);
    case ActivationKind::kGeluByTanh:
      return Eltwise(algorithm::eltwise_gelu_tanh);
    case ActivationKind::kSwish:
      return Eltwise(algorithm::eltwise_swish, 1);
    case ActivationKind::kHardSwish:
      return Eltwise(algorithm::eltwise_hardswish);
    case ActivationKind::kSquare:
      break;
  }
  return Eltwise(algorithm::eltwise_square);
}

}  // namespace

std::optional<Pointwise> RecognisePointwise(const OpSequence& sequence, std::span<const Step> steps, size_t current) {
  if (!IsReadIn(steps.subspan(1), current)) {
    if (std::optional<PostOp> post_op = SingleStep(sequence, steps[0], current)) return Pointwise{*post_op, 1, steps[0].outputs[0]};
  }
  const std::optional<WrittenOutActivation> found = RecogniseActivation(sequence, steps, current);
  if (!found) return std::nullopt;
  return Pointwise{PostOpOf(found->activation), found->steps, found->result};
}

}  // namespace collage::dnnl_backend
