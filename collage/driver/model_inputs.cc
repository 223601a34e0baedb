#include "collage/driver/model_inputs.h"

#include "collage/op/rounding_effect.h"

namespace collage {
namespace {

constexpr uint64_t kInputSeed = 20240229;

}  // namespace

Result<ReferenceSample> ModelSample(const Expr& function, const InterpreterOptions& options) {
  return SampleReference(function, kInputSeed, options);
}

Result<std::vector<Agreement>> ModelRounding(const Expr& function, const ReferenceSample& sample, const InterpreterOptions& options) {
  const auto run = [&](const std::vector<Tensor>& inputs, const InterpreterOptions& rounded) {
    return InterpretFunction(function, inputs, rounded);
  };
  return RoundingEffect(run, sample, kInputSeed, options);
}

std::vector<Tensor> ModelInputs(const Executable& executable) {
  std::vector<Tensor> inputs;
  for (const NamedType& input : executable.inputs()) {
    inputs.emplace_back(input.type);
    FillRandom(inputs.back(), kInputSeed + inputs.size());
  }
  return inputs;
}

}  // namespace collage
