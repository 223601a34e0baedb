#include "tests/conformance/reference.h"

#include <stdexcept>

namespace collage::conformance {

ReferenceRun::ReferenceRun(const Function& function, const std::vector<Tensor>& inputs) {
  auto sequence = ToOpSequence(function);
  if (!sequence) throw std::runtime_error(sequence.error().message);
  sequence_ = std::move(*sequence);
  for (const OpSequence::Value& value : sequence_.values) values_.push_back(value.constant.value_or(Tensor()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    values_[sequence_.parameters[i]] = inputs[i];
    tensors_of_[function.parameters[i].get()] = {sequence_.parameters[i]};
  }
  for (const OpSequence::Step& step : sequence_.steps) {
    std::vector<Tensor> arguments;
    std::vector<Tensor> outputs;
    for (size_t input : step.inputs) arguments.push_back(values_[input]);
    for (size_t output : step.outputs) outputs.emplace_back(sequence_.values[output].type);
    step.op->reference(arguments, step.attributes, outputs);
    for (size_t i = 0; i < outputs.size(); ++i) values_[step.outputs[i]] = outputs[i];
    tensors_of_[step.call.get()] = step.outputs;
  }
}

std::vector<Tensor> ReferenceRun::Results() const {
  std::vector<Tensor> results;
  for (size_t result : sequence_.results) results.push_back(values_[result]);
  return results;
}

std::vector<Tensor> ReferenceRun::Of(const Expr& expr) const {
  if (const Constant* constant = expr->As<Constant>()) return {constant->value};
  std::vector<Tensor> tensors;
  for (size_t value : tensors_of_.at(expr.get())) tensors.push_back(values_[value]);
  return tensors;
}

}  // namespace collage::conformance
