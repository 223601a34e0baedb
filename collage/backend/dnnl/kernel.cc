#include "collage/backend/dnnl/kernel.h"

#include <dnnl.h>
#include <dnnl_debug.h>
#include <omp.h>

#include <algorithm>
#include <utility>

#include "collage/backend/dnnl/layouts.h"
#include "collage/support/memory.h"

namespace collage::dnnl_backend {
namespace {

using dnnl::memory;

/// The address that an argument has now: no part of what a twin, made while the kernel runs, may look at.
struct Address {
  const void* pointer = nullptr;
  Address() = default;
  Address(const Address&) {}
  Address& operator=(const Address&) = delete;
};

/// An argument whose memory is the caller's.
struct Binding {
  memory argument;
  size_t port;  ///< of an input or an output; within the workspace, the byte at which it begins
  Address bound = {};
};

/// A parameter of unsigned bytes, of which the library gets a signed copy in the workspace.
struct MadeSigned {
  size_t port;
  size_t bytes;
  size_t begins;  ///< at this byte of the workspace
};

/// Bytes less 128, as signed ones: the highest bit is exchanged.
void MakeSigned(const void* from, void* to, size_t bytes) {
  constexpr uint8_t kHighestBit = 0x80;
  const auto* unsigned_bytes = static_cast<const uint8_t*>(from);
  auto* signed_bytes = static_cast<uint8_t*>(to);
#pragma omp parallel for simd schedule(static)
  for (size_t i = 0; i < bytes; ++i) signed_bytes[i] = unsigned_bytes[i] ^ kHighestBit;
}

class PrimitiveKernel final : public Kernel {
 public:
  explicit PrimitiveKernel(int threads) : threads_(threads), stream_(Engine()) {}

  Status Build(const OpSequence& sequence, const Plan& plan) {
    primitive_ = dnnl::primitive(plan.primitive.get());
    DeclareInputs(sequence, plan);
    for (const Argument& argument : plan.arguments) COLLAGE_TRY_STATUS(Add(sequence, argument));
    if (plan.accumulated) accumulated_input_ = static_cast<size_t>(PortOf(sequence.parameters, *plan.accumulated));
    const memory::desc scratchpad = plan.primitive.scratchpad_desc();
    if (scratchpad.get_size() > 0) AddToWorkspace(DNNL_ARG_SCRATCHPAD, scratchpad);
    return {};
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    omp_set_num_threads(threads_);
    dnnl_status_t status = dnnl_success;
    for (Binding& binding : inputs_bound_) status = std::max(status, Bind(binding, inputs[binding.port]));
    for (Binding& binding : outputs_bound_) status = std::max(status, Bind(binding, outputs[binding.port]));
    for (Binding& binding : workspace_) status = std::max(status, Bind(binding, static_cast<std::byte*>(workspace) + binding.port));
    for (const MadeSigned& made : made_signed_) MakeSigned(inputs[made.port], static_cast<std::byte*>(workspace) + made.begins, made.bytes);
    // The C function: the C++ one wants a hash map of arguments for each run.
    if (status == dnnl_success)
      status = dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
    if (status != dnnl_success) return Fail(std::string("oneDNN: execution failed: ") + dnnl_status2str(status));
    return {};
  }

  // A primitive may run in several threads at once, since its scratchpad is the caller's; what it is given may not be shared.
  [[nodiscard]] std::unique_ptr<Kernel> Twin() const override {
    try {
      auto twin = std::make_unique<PrimitiveKernel>(*this);
      twin->stream_ = dnnl::stream(Engine());
      for (std::vector<Binding>* bindings : {&twin->inputs_bound_, &twin->outputs_bound_, &twin->workspace_}) {
        for (Binding& binding : *bindings) twin->Renew(binding);
      }
      return twin;
    } catch (const std::exception&) {
      return nullptr;
    }
  }

 private:
  void Renew(Binding& binding) {
    const memory own(binding.argument.get_desc(), Engine(), DNNL_MEMORY_NONE);
    for (dnnl_exec_arg_t& argument : arguments_) {
      if (argument.memory == binding.argument.get()) argument.memory = own.get();
    }
    binding.argument = own;
  }

  static std::ptrdiff_t PortOf(const std::vector<size_t>& values, size_t value) {
    const auto at = std::find(values.begin(), values.end(), value);
    return at == values.end() ? -1 : at - values.begin();
  }

  // A changed address makes the library clear the padding of blocked tensors again; buffers stay where they are from run to run,
  // so this is rarely done.
  static dnnl_status_t Bind(Binding& binding, const void* pointer) {
    if (binding.bound.pointer == pointer) return dnnl_success;
    binding.bound.pointer = pointer;
    return dnnl_memory_set_data_handle(binding.argument.get(), const_cast<void*>(pointer));
  }

  void DeclareInputs(const OpSequence& sequence, const Plan& plan) {
    for (const size_t value : sequence.parameters) {
      Port port{sequence.values[value].type, Layout()};
      for (const Argument& argument : plan.arguments) {
        const bool accumulated = plan.accumulated == value && argument.id == DNNL_ARG_DST;
        if (argument.value == value || accumulated) port.layout = argument.layout;
      }
      inputs_.push_back(std::move(port));
    }
  }

  void AddArgument(int id, const memory& argument) { arguments_.push_back({id, argument.get()}); }

  // Gives the byte at which it begins.
  size_t AddToWorkspace(int id, const memory::desc& desc) {
    const size_t begins = AlignedBytes(workspace_bytes_);
    workspace_.push_back({memory(desc, Engine(), DNNL_MEMORY_NONE), begins});
    AddArgument(id, workspace_.back().argument);
    workspace_bytes_ = begins + desc.get_size();
    return begins;
  }

  Status Add(const OpSequence& sequence, const Argument& argument) {
    const OpSequence::Value& value = sequence.values[argument.value];
    if (value.constant) {
      constants_.push_back(Packed(*value.constant, argument));
      AddArgument(argument.id, constants_.back());
      return {};
    }
    const bool is_result = argument.id == DNNL_ARG_DST;
    const std::ptrdiff_t port = is_result ? 0 : PortOf(sequence.parameters, argument.value);
    if (port < 0) return Fail("oneDNN: an argument is neither a constant nor a parameter");
    if (argument.is_made_signed) {
      const size_t begins = AddToWorkspace(argument.id, argument.desc);
      made_signed_.push_back({static_cast<size_t>(port), value.type.ByteCount(), begins});
      return {};
    }
    if (argument.desc.get_size() > PhysicalByteCount(value.type, argument.layout))
      return Fail("oneDNN: the primitive reaches beyond " + ToString(value.type));
    if (is_result) outputs_.push_back({value.type, argument.layout});
    std::vector<Binding>& bindings = is_result ? outputs_bound_ : inputs_bound_;
    bindings.push_back({memory(argument.desc, Engine(), DNNL_MEMORY_NONE), static_cast<size_t>(port)});
    AddArgument(argument.id, bindings.back().argument);
    return {};
  }

  memory Packed(const Tensor& constant, const Argument& argument) {
    const Tensor prepared = argument.prepared ? argument.prepared(constant) : constant;
    const memory::desc plain = argument.constant_desc ? *argument.constant_desc : Describe(argument.desc.dims(), kPlain, prepared.dtype());
    memory source(plain, Engine(), const_cast<std::byte*>(prepared.Bytes()));
    storage_.push_back(AllocateWeights(argument.desc.get_size()));
    memory packed(argument.desc, Engine(), storage_.back().get());
    dnnl::reorder(source, packed).execute(stream_, source, packed);
    stream_.wait();
    return packed;
  }

  int threads_;
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::vector<memory> constants_;
  std::vector<std::shared_ptr<std::byte>> storage_;  // of the constants
  std::vector<Binding> inputs_bound_;
  std::vector<Binding> outputs_bound_;
  std::vector<Binding> workspace_;
  std::vector<MadeSigned> made_signed_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> MakeKernel(const OpSequence& sequence, const Plan& plan, const Device& device) {
  auto kernel = std::make_unique<PrimitiveKernel>(device.threads);
  COLLAGE_TRY_STATUS(kernel->Build(sequence, plan));
  return kernel;
}

}  // namespace collage::dnnl_backend
