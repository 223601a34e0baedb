#include "collage/backend/xsmm/recurrent_kernel.h"

#include <utility>

#include "collage/backend/xsmm/micro_kernel.h"
#include "collage/backend/xsmm/recurrent_program.h"

namespace collage::xsmm {
namespace {

class RecurrentKernel final : public Kernel {
 public:
  RecurrentKernel(const OpSequence& sequence, std::shared_ptr<const RecurrentProgram> program) : program_(std::move(program)) {
    for (const size_t value : sequence.parameters) inputs_.push_back({sequence.values[value].type, {}});
    for (const size_t value : sequence.results) outputs_.push_back({sequence.values[value].type, {}});
    workspace_bytes_ = program_->workspace_bytes();
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    const RecurrentProgram::Buffers buffers{inputs, outputs, static_cast<float*>(workspace)};
    const RecurrentProgram& program = *program_;
    // Two references and no more, which a std::function holds without allocating.
    ParallelRegion(program.threads(), [&buffers, &program](const TeamMember& member) { program.Run(buffers, member); });
    return {};
  }

  [[nodiscard]] std::unique_ptr<Kernel> Twin() const override { return std::make_unique<RecurrentKernel>(*this); }

 private:
  std::shared_ptr<const RecurrentProgram> program_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> MakeRecurrentKernel(const RecurrentLayer& layer, int threads) {
  const InstructionSet instructions = COLLAGE_TRY(DetectInstructionSet());
  return std::make_unique<RecurrentKernel>(*layer.sequence, COLLAGE_TRY(RecurrentProgram::Make(layer, instructions, threads)));
}

}  // namespace collage::xsmm
