#include "collage/backend/cudnn/kernel.h"

#include <algorithm>
#include <optional>

#include "collage/runtime/layout_conversion.h"

namespace collage::cudnn {
namespace {

/// Where the address of one of the graph's tensors comes from.
struct Source {
  std::optional<size_t> input;     ///< of the kernel
  const void* constant = nullptr;  ///< on the device; null with `input` unset: the result
};

/// What kernels of one function share.
struct Made {
  Session* session;
  Plan plan;
  std::vector<DeviceMemory> constants;
  std::vector<int64_t> ids;  ///< of the graph's tensors
  std::vector<Source> sources;
};

class LayerKernel final : public Kernel {
 public:
  LayerKernel(std::shared_ptr<const Made> made, std::vector<Port> inputs, Port output) : made_(std::move(made)) {
    context_ = made_->session->context();
    inputs_ = std::move(inputs);
    outputs_ = {std::move(output)};
    workspace_bytes_ = made_->plan.workspace_bytes;
    addresses_.resize(made_->sources.size());
  }

  // The library's list of addresses cannot be changed once it is finalised. So it is kept until others are given.
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    bool is_known = pack_ && workspace == workspace_;
    for (size_t i = 0; i < addresses_.size(); ++i) {
      const Source& source = made_->sources[i];
      const void* given = source.input ? inputs[*source.input] : source.constant;
      void* address = given ? const_cast<void*>(given) : outputs[0];
      is_known = is_known && addresses_[i] == address;
      addresses_[i] = address;
    }
    workspace_ = workspace;
    if (!is_known) COLLAGE_TRY_STATUS(MakePack());
    return made_->session->Execute(made_->plan.plan.raw(), pack_->raw());
  }

  [[nodiscard]] std::unique_ptr<Kernel> Twin() const override { return std::make_unique<LayerKernel>(made_, inputs_, outputs_[0]); }

  Status RunOnce() {
    std::vector<DeviceMemory> memory;
    const auto place = [&](size_t bytes) -> Result<void*> {
      memory.push_back(COLLAGE_TRY(DeviceMemory::Allocate(context_, bytes)));
      return memory.back().address();
    };
    std::vector<const void*> inputs;
    for (const Port& port : inputs_) inputs.push_back(COLLAGE_TRY(place(port.type.ByteCount())));
    void* const output = COLLAGE_TRY(place(outputs_[0].type.ByteCount()));
    void* const workspace = workspace_bytes_ > 0 ? COLLAGE_TRY(place(workspace_bytes_)) : nullptr;
    COLLAGE_TRY_STATUS(Run(inputs, std::span(&output, 1), workspace));
    return context_->WaitForAll();
  }

 private:
  Status MakePack() {
    pack_.reset();
    pack_ = COLLAGE_TRY(DescriptorBuilder(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
                            .Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, made_->ids)
                            .Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses_)
                            .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace_)
                            .Finalised());
    return {};
  }

  std::shared_ptr<const Made> made_;
  std::vector<void*> addresses_;
  void* workspace_ = nullptr;
  std::optional<Descriptor> pack_;  ///< of these addresses
};

/// The tensor of the function that a number of the graph means; nothing for a bias that it does not have.
std::optional<size_t> ValueOf(const Layer& layer, int64_t id) {
  switch (id) {
    case kData:
      return layer.data;
    case kWeight:
      return layer.weight;
    case kAdded:
      return layer.added;
    case kBias:
      return layer.bias;
    default:
      return layer.result;
  }
}

Tensor InLayout(const Tensor& constant, const Layout& layout) {
  if (layout.IsPlain()) return constant;
  constexpr int kThreads = 1;  // a kernel's constants are converted once
  Tensor converted(constant.type());
  LayoutConversion(constant.type(), Layout(), layout, kThreads).Run(constant.Bytes(), converted.MutableBytes());
  return converted;
}

/// As it is brought to the device: zeros for a bias that the function does not have.
Tensor ConstantOf(const OpSequence& sequence, const Layer& layer, int64_t id, bool channels_last) {
  const std::optional<size_t> value = ValueOf(layer, id);
  if (!value) return Tensor(TensorType{{sequence.values[layer.result].type.shape[1]}, layer.dtype});
  const Tensor& constant = *sequence.values[*value].constant;
  return id == kBias ? constant : InLayout(constant, LayoutOf(constant.shape(), channels_last));
}

Status AddSource(const OpSequence& sequence, const Layer& layer, int64_t id, bool channels_last, Made& made) {
  const std::optional<size_t> value = ValueOf(layer, id);
  if (id == kResult) {
    made.sources.emplace_back();
  } else if (!value || sequence.values[*value].constant) {
    made.constants.push_back(COLLAGE_TRY(cuda::BringConstant(made.session->context(), ConstantOf(sequence, layer, id, channels_last))));
    made.sources.push_back({std::nullopt, made.constants.back().address()});
  } else {
    const auto parameter = std::find(sequence.parameters.begin(), sequence.parameters.end(), *value);
    made.sources.push_back({static_cast<size_t>(parameter - sequence.parameters.begin())});
  }
  return {};
}

Result<Plan> PlanOf(const OpSequence& sequence, const Layer& layer, bool channels_last, const Choice& choice, Session& session) {
  const std::unique_lock<std::mutex> lock = session.Lock();
  Graph graph = COLLAGE_TRY(MakeGraph(sequence, layer, channels_last, session.handle()));
  return MakePlan(std::move(graph), choice, layer, session.handle());
}

}  // namespace

Result<std::unique_ptr<Kernel>> MakeKernel(const OpSequence& sequence, const Layer& layer, bool channels_last, const Choice& choice,
                                           Session& session) {
  Plan plan = COLLAGE_TRY(PlanOf(sequence, layer, channels_last, choice, session));
  auto made = std::make_shared<Made>(Made{&session, std::move(plan), {}, GivenTensors(layer), {}});
  for (const int64_t id : made->ids) COLLAGE_TRY_STATUS(AddSource(sequence, layer, id, channels_last, *made));
  const auto port = [&](size_t value) {
    const TensorType& type = sequence.values[value].type;
    return Port{type, LayoutOf(type.shape, channels_last)};
  };
  std::vector<Port> inputs;
  for (const size_t parameter : sequence.parameters) inputs.push_back(port(parameter));
  auto kernel = std::make_unique<LayerKernel>(std::move(made), std::move(inputs), port(layer.result));
  COLLAGE_TRY_STATUS(kernel->RunOnce());
  return kernel;
}

}  // namespace collage::cudnn
