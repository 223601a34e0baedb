#include "collage/driver/model_inputs.h"

namespace collage {
namespace {

constexpr uint64_t kInputSeed = 20240229;

}  // namespace

Result<ReferenceSample> ModelSample(const Expr& function, const InterpreterOptions& options) {
  return SampleReference(function, kInputSeed, options);
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
