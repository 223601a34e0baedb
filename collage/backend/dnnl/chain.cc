#include "collage/backend/dnnl/chain.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "collage/backend/dnnl/pointwise.h"
#include "collage/backend/strided_view.h"

namespace collage::dnnl_backend {
namespace {

using Step = OpSequence::Step;

constexpr std::array<std::string_view, 13> kBases = {"nn.conv2d",     "nn.conv2d_transpose",  "nn.dense",
                                                     "nn.matmul",     "nn.batch_matmul",      "nn.max_pool2d",
                                                     "nn.avg_pool2d", "nn.global_avg_pool2d", "nn.global_max_pool2d",
                                                     "nn.lrn",        "nn.softmax",           "nn.log_softmax",
                                                     "concatenate"};

constexpr std::array<std::string_view, 5> kWithBias = {"nn.conv2d", "nn.conv2d_transpose", "nn.dense", "nn.matmul", "nn.batch_matmul"};

template <size_t size>
bool Contains(const std::array<std::string_view, size>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

size_t ChannelAxis(const Step& base, size_t rank) { return base.op->name.starts_with("nn.conv2d") ? 1 : rank - 1; }

// The constant vector that a step adds to each channel of `current`.
std::optional<size_t> BiasOf(const Chain& chain, const Step& step, size_t current) {
  if (step.op->name != "add" && step.op->name != "nn.bias_add") return std::nullopt;
  const size_t other = step.inputs[0] == current ? step.inputs[1] : step.inputs[0];
  if (other == current || !chain.IsConstant(other)) return std::nullopt;
  const Shape& shape = chain.ShapeOf(current);
  const size_t axis = ChannelAxis(*chain.base, shape.size());
  if (step.op->name == "add") {
    return IsChannelVector(chain.ShapeOf(other), shape.size(), axis, shape[axis]) ? std::optional(other) : std::nullopt;
  }
  int64_t given = step.attributes.Int("axis", 1).value_or(1);
  if (given < 0) given += static_cast<int64_t>(shape.size());
  return given == static_cast<int64_t>(axis) ? std::optional(other) : std::nullopt;
}

// The tensor that a function without a base starts from: an operand of the first step that has the shape of its result,
// preferably not a constant.
size_t FirstTensor(const OpSequence& sequence, const Step& step) {
  const Shape& shape = sequence.values[step.outputs[0]].type.shape;
  for (const bool constants : {false, true}) {
    for (const size_t input : step.inputs) {
      if (sequence.values[input].constant.has_value() == constants && sequence.values[input].type.shape == shape) return input;
    }
  }
  return step.inputs[0];
}

Status CheckTensors(const OpSequence& sequence) {
  if (sequence.steps.empty() || sequence.results.size() != 1) return Fail("oneDNN: one operator at least and one result are wanted");
  std::vector<size_t> used;
  for (const Step& step : sequence.steps) {
    used.insert(used.end(), step.inputs.begin(), step.inputs.end());
    used.insert(used.end(), step.outputs.begin(), step.outputs.end());
  }
  for (const size_t number : used) {
    const OpSequence::Value& value = sequence.values[number];
    if (value.type.dtype != DType::kFloat32) return Fail("oneDNN: float32 is supported, not " + std::string(Name(value.type.dtype)));
    if (value.type.ElementCount() == 0) return Fail("oneDNN: a tensor has no elements");
    if (value.type.shape.size() > 6) return Fail("oneDNN: at most 6 dimensions are supported, not " + ToString(value.type));
  }
  return {};
}

bool IsMovement(const Step& step) { return step.op->name == "reshape" || step.op->name == "transpose"; }

// The matrices of attention are split into heads in front of a product and merged behind it.
void TakeViews(Chain& chain, std::span<const Step>& steps) {
  size_t first = 0;
  while (first < steps.size() && IsMovement(steps[first])) ++first;
  if (first == steps.size() || (steps[first].op->name != "nn.matmul" && steps[first].op->name != "nn.batch_matmul")) return;
  size_t end = steps.size();
  while (IsMovement(steps[end - 1])) --end;
  chain.views_behind = steps.subspan(0, first);
  chain.views_ahead = steps.subspan(end);
  steps = steps.subspan(first, end - first);
}

// Operands come from outside: a value that the chain computed on its way would have to be stored first.
bool IsGiven(const OpSequence& sequence, size_t value) {
  return std::none_of(sequence.steps.begin(), sequence.steps.end(),
                      [&](const Step& step) { return std::find(step.outputs.begin(), step.outputs.end(), value) != step.outputs.end(); });
}

}  // namespace

bool IsChannelVector(const Shape& shape, size_t rank, size_t axis, int64_t channels) {
  if (shape.size() > rank || shape.size() + axis < rank) return false;
  const size_t missing = rank - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != (i + missing == axis ? channels : 1)) return false;
  }
  return true;
}

Result<Chain> ParseChain(const OpSequence& sequence) {
  COLLAGE_TRY_STATUS(CheckTensors(sequence));
  Chain chain{&sequence};
  std::span<const Step> steps = sequence.steps;
  size_t current = 0;
  TakeViews(chain, steps);
  if (steps.empty()) return Fail("oneDNN: nothing is computed");
  if (Contains(kBases, steps[0].op->name)) {
    chain.base = &steps[0];
    current = chain.base->outputs[0];
    steps = steps.subspan(1);
    if (!steps.empty() && Contains(kWithBias, chain.base->op->name)) chain.bias = BiasOf(chain, steps[0], current);
  } else {
    chain.input = current = FirstTensor(sequence, steps[0]);
  }
  if (chain.bias) {
    current = steps[0].outputs[0];
    steps = steps.subspan(1);
  }
  while (!steps.empty()) {
    const std::optional<Pointwise> next = RecognisePointwise(sequence, steps, current);
    if (!next) return Fail("oneDNN: " + steps[0].op->name + " is no post-operation here");
    if (next->post_op.operand && !IsGiven(sequence, *next->post_op.operand)) return Fail("oneDNN: an operand is computed inside the chain");
    chain.post_ops.push_back(next->post_op);
    current = next->result;
    steps = steps.subspan(next->steps);
  }
  const size_t last = chain.views_ahead.empty() ? current : chain.views_ahead.back().outputs[0];
  if (last != sequence.results[0]) return Fail("oneDNN: the result is not the end of the chain");
  chain.result = current;
  return chain;
}

}  // namespace collage::dnnl_backend
