#include "collage/backend/xsmm/kernel.h"

#include <algorithm>
#include <utility>

#include "collage/backend/xsmm/program.h"
#include "collage/runtime/parallel.h"

namespace collage::xsmm {
namespace {

class ProgramKernel final : public Kernel {
 public:
  ProgramKernel(std::vector<Port> inputs, Port output, std::optional<size_t> accumulated, std::shared_ptr<const Program> program)
      : program_(std::move(program)) {
    accumulated_input_ = accumulated;
    inputs_ = std::move(inputs);
    outputs_ = {std::move(output)};
    workspace_bytes_ = program_->pieces() * program_->scratch_bytes();
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    const Arguments arguments{inputs, static_cast<float*>(outputs[0]), static_cast<float*>(workspace)};
    const Program& program = *program_;
    // Two references and no more, which a std::function holds without allocating.
    ParallelFor(program.pieces(), 1, static_cast<int>(program.pieces()), [&arguments, &program](size_t begin, size_t end) {
      for (size_t piece = begin; piece < end; ++piece) {
        float* scratch = arguments.workspace + piece * program.scratch_bytes() / sizeof(float);
        program.Run(piece, arguments.inputs, arguments.result, scratch);
      }
    });
    return {};
  }

  [[nodiscard]] std::unique_ptr<Kernel> Twin() const override { return std::make_unique<ProgramKernel>(*this); }

 private:
  struct Arguments {
    std::span<const void* const> inputs;
    float* result;
    float* workspace;
  };

  std::shared_ptr<const Program> program_;
};

// Of the port of a parameter: operands of the result's shape lie as the result does.
Layout LayoutOf(const Chain& chain, const Form& form, size_t value) {
  if (value == chain.Data()) return form.data;
  for (const TailStep& step : chain.tail.steps) {
    for (const TailArgument* argument : {&step.first, &step.second, &step.third}) {
      if (argument->kind == TailArgument::Kind::kWhole && argument->value == value) return form.result;
    }
  }
  return {};
}

// The port of a tensor that the result may take the place of: one of its shape which the tail reads once, tile by tile, before it stores
// the result of the tile. Half as much memory is touched then.
std::optional<size_t> AccumulatedPort(const Chain& chain) {
  const std::vector<size_t>& parameters = chain.sequence->parameters;
  for (const TailStep& step : chain.tail.steps) {
    for (const TailArgument* argument : {&step.first, &step.second, &step.third}) {
      if (argument->kind != TailArgument::Kind::kWhole) continue;
      size_t uses = 0;
      for (const OpSequence::Step& one : chain.sequence->steps)
        uses += static_cast<size_t>(std::count(one.inputs.begin(), one.inputs.end(), argument->value));
      const auto port = std::find(parameters.begin(), parameters.end(), argument->value);
      if (port != parameters.end() && uses == 1) return static_cast<size_t>(port - parameters.begin());
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<Layout> InputLayouts(const Chain& chain, const Form& form) {
  std::vector<Layout> layouts;
  for (const size_t parameter : chain.sequence->parameters) layouts.push_back(LayoutOf(chain, form, parameter));
  return layouts;
}

std::unique_ptr<Kernel> MakeProgramKernel(std::vector<Port> inputs, Port output, std::optional<size_t> accumulated_input,
                                          std::shared_ptr<const Program> program) {
  return std::make_unique<ProgramKernel>(std::move(inputs), std::move(output), accumulated_input, std::move(program));
}

Result<std::unique_ptr<Kernel>> MakeKernel(const Chain& chain, const Form& form, int64_t size, const Device& device) {
  const std::vector<Layout> layouts = InputLayouts(chain, form);
  std::vector<Port> inputs;
  for (size_t i = 0; i < layouts.size(); ++i) inputs.push_back({chain.TypeOf(chain.sequence->parameters[i]), layouts[i]});
  const Port output{chain.TypeOf(chain.sequence->results[0]), form.result};
  return MakeProgramKernel(std::move(inputs), output, AccumulatedPort(chain), COLLAGE_TRY(form.make(chain, form, size, device.threads)));
}

}  // namespace collage::xsmm
