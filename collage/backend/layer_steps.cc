#include "collage/backend/layer_steps.h"

#include <algorithm>

namespace collage {
namespace {

bool IsGiven(const OpSequence& sequence, size_t value) {
  return sequence.values[value].constant ||
         std::find(sequence.parameters.begin(), sequence.parameters.end(), value) != sequence.parameters.end();
}

const Shape& ShapeOf(const OpSequence& sequence, size_t value) { return sequence.values[value].type.shape; }

}  // namespace

Status CheckFloatTensors(const std::string& backend, const OpSequence& sequence) {
  if (sequence.steps.empty() || sequence.results.size() != 1) return Fail(backend + ": a function of operators with one result is wanted");
  const DType dtype = sequence.values[sequence.results[0]].type.dtype;
  if (dtype != DType::kFloat32 && dtype != DType::kFloat16) return Fail(backend + ": float32 and float16 are supported");
  for (const OpSequence::Value& value : sequence.values) {
    if (value.type.dtype != dtype) return Fail(backend + ": all tensors have one type");
    if (value.type.ElementCount() == 0) return Fail(backend + ": a tensor has no elements");
  }
  return {};
}

std::optional<size_t> OtherOperand(const OpSequence& sequence, const OpSequence::Step& step, size_t current) {
  if (step.inputs.size() != 2 || (step.inputs[0] == current) == (step.inputs[1] == current)) return std::nullopt;
  if (ShapeOf(sequence, step.outputs[0]) != ShapeOf(sequence, current)) return std::nullopt;
  return step.inputs[step.inputs[0] == current ? 1 : 0];
}

std::optional<size_t> AddedTensor(const OpSequence& sequence, const OpSequence::Step& step, size_t current) {
  const std::optional<size_t> other = OtherOperand(sequence, step, current);
  if (!other || step.op->name != "add" || !IsGiven(sequence, *other)) return std::nullopt;
  return ShapeOf(sequence, *other) == ShapeOf(sequence, current) ? other : std::nullopt;
}

}  // namespace collage
