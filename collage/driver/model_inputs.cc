#include "collage/driver/model_inputs.h"

namespace collage {
namespace {

constexpr uint64_t kInputSeed = 20240229;

}  // namespace

std::vector<Tensor> ModelInputs(const Executable& executable) {
  std::vector<Tensor> inputs;
  for (const NamedType& input : executable.inputs()) {
    inputs.emplace_back(input.type);
    if (input.type.dtype != DType::kFloat16 && input.type.dtype != DType::kBFloat16) FillRandom(inputs.back(), kInputSeed + inputs.size());
  }
  return inputs;
}

}  // namespace collage
