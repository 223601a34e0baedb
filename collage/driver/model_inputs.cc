#include "collage/driver/model_inputs.h"

#include "collage/backend/host_reference_team.h"
#include "collage/ir/constant_memory.h"

namespace collage {
namespace {

constexpr uint64_t kInputSeed = 20240229;

}  // namespace

Result<ReferenceSample> ModelSample(const Expr& function, const InterpreterOptions& options) {
  return SampleReference(function, kInputSeed, options);
}

Result<const ReferenceSample*> ModelReference::Sample() {
  if (!sample_) {
    const HostReferenceTeam team(threads_);
    sample_ = COLLAGE_TRY(ModelSample(function_, Watched("running the reference")));
    GiveBackConstants(function_);
  }
  return &*sample_;
}

Result<RoundingEffect*> ModelReference::Rounding() {
  if (!rounding_) {
    const auto run = [this](const std::vector<Tensor>& inputs, const InterpreterOptions& rounded) {
      const HostReferenceTeam team(threads_);
      Result<std::vector<Tensor>> found = InterpretFunction(function_, inputs, rounded);
      GiveBackConstants(function_);
      return found;
    };
    rounding_.emplace(run, *COLLAGE_TRY(Sample()), kInputSeed, Watched("running the reference with rounding"));
  }
  return &*rounding_;
}

InterpreterOptions ModelReference::Watched(const char* stage) const {
  InterpreterOptions options;
  options.on_operator = [this, stage, done = size_t{0}](const Expr&, std::span<const Tensor>) mutable {
    progress_.Report({stage, ++done, operators_, {}});
  };
  return options;
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
