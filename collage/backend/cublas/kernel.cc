#include "collage/backend/cublas/kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

#include "collage/backend/cublas/matmul.h"
#include "collage/support/memory.h"

namespace collage::cublas {
namespace {

/// Aligned as the device's allocations are, of which a bias is one: by its address the library sees which algorithms may read it. It asks
/// nothing else of it, so the same are proposed before there is a bias on the device and afterwards.
alignas(256) constexpr std::byte kStandInForBias{};

std::string NameOf(const Layer& layer, size_t algorithm) {
  return std::string(layer.in_tf32 ? kTf32 : "") + "heuristic" + std::to_string(algorithm);
}

Result<std::vector<Algorithm>> Propose(const Layer& layer, const Session& session) {
  const Matmul matmul = COLLAGE_TRY(Matmul::Describe(layer, &kStandInForBias));
  return matmul.Algorithms(session);
}

Result<Algorithm> AlgorithmNamed(const std::string& name, const Layer& layer, const Session& session) {
  const std::vector<Algorithm> proposed = COLLAGE_TRY(Propose(layer, session));
  for (size_t i = 0; i < proposed.size(); ++i) {
    if (NameOf(layer, i) == name) return proposed[i];
  }
  return Fail("cublas: there is no variant '" + name + "' of this function");
}

/// Constants on the device, by value.
class Constants {
 public:
  Status Bring(const OpSequence& sequence, size_t value, const std::shared_ptr<cuda::CudaContext>& context) {
    const std::optional<Tensor>& constant = sequence.values[value].constant;
    if (constant && !memory_.contains(value)) memory_.emplace(value, COLLAGE_TRY(cuda::BringConstant(context, *constant)));
    return {};
  }
  /// Null for what is no constant.
  [[nodiscard]] const void* At(size_t value) const {
    const auto found = memory_.find(value);
    return found == memory_.end() ? nullptr : found->second.address();
  }

 private:
  std::unordered_map<size_t, DeviceMemory> memory_;
};

/// What the kernels of a function share; none of them changes it.
struct Prepared {
  Session session;
  Constants constants;
  Matmul matmul;
  Algorithm algorithm;
};

/// A tensor that is read: a constant, or the number of a port.
struct Source {
  const void* constant = nullptr;
  size_t port = 0;

  [[nodiscard]] const void* Address(std::span<const void* const> inputs) const { return constant ? constant : inputs[port]; }
};

class LayerKernel final : public Kernel {
 public:
  LayerKernel(const OpSequence& sequence, const Layer& layer, std::shared_ptr<const Prepared> prepared) : prepared_(std::move(prepared)) {
    for (const size_t value : sequence.parameters) inputs_.push_back({sequence.values[value].type, Layout()});
    outputs_.push_back({sequence.values[layer.result].type, Layout()});
    context_ = prepared_->session.context;
    a_ = SourceOf(sequence, layer.a.value);
    b_ = SourceOf(sequence, layer.b.value);
    if (layer.added) added_ = SourceOf(sequence, *layer.added);
    if (prepared_->algorithm.workspace_bytes > 0)
      workspace_bytes_ = prepared_->algorithm.workspace_bytes + kWorkspaceAlignment - kBufferAlignment;
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    COLLAGE_TRY_STATUS(prepared_->session.context->Enter());
    return prepared_->matmul.Run(prepared_->session, prepared_->algorithm,
                                 {.a = a_.Address(inputs),
                                  .b = b_.Address(inputs),
                                  .added = added_ ? added_->Address(inputs) : nullptr,
                                  .result = outputs[0],
                                  .workspace = workspace_bytes_ > 0 ? Aligned(workspace) : nullptr});
  }

  [[nodiscard]] std::unique_ptr<Kernel> Twin() const override { return std::make_unique<LayerKernel>(*this); }

 private:
  [[nodiscard]] Source SourceOf(const OpSequence& sequence, size_t value) const {
    if (const void* constant = prepared_->constants.At(value)) return {constant};
    const auto port = std::find(sequence.parameters.begin(), sequence.parameters.end(), value);
    return {nullptr, static_cast<size_t>(port - sequence.parameters.begin())};
  }

  static void* Aligned(void* workspace) {
    const size_t beyond = reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment;
    return static_cast<std::byte*>(workspace) + (beyond > 0 ? kWorkspaceAlignment - beyond : 0);
  }

  std::shared_ptr<const Prepared> prepared_;
  Source a_;
  Source b_;
  std::optional<Source> added_;
};

}  // namespace

Result<std::vector<std::string>> AlgorithmsOf(const Layer& layer, const Device& device) {
  const Session session = COLLAGE_TRY(Session::Of(device));
  const std::vector<Algorithm> proposed = COLLAGE_TRY(Propose(layer, session));
  std::vector<std::string> names;
  for (size_t i = 0; i < proposed.size(); ++i) names.push_back(NameOf(layer, i));
  return names;
}

Result<std::unique_ptr<Kernel>> MakeKernel(const OpSequence& sequence, const Layer& layer, const std::string& algorithm,
                                           const Device& device) {
  const Session session = COLLAGE_TRY(Session::Of(device));
  Algorithm chosen = COLLAGE_TRY(AlgorithmNamed(algorithm, layer, session));
  Constants constants;
  for (const size_t value : {layer.a.value, layer.b.value}) COLLAGE_TRY_STATUS(constants.Bring(sequence, value, session.context));
  for (const std::optional<size_t>& value : {layer.bias, layer.added}) {
    if (value) COLLAGE_TRY_STATUS(constants.Bring(sequence, *value, session.context));
  }
  Matmul matmul = COLLAGE_TRY(Matmul::Describe(layer, layer.bias ? constants.At(*layer.bias) : nullptr));
  chosen.workspace_bytes = COLLAGE_TRY(matmul.Check(session, chosen));
  auto prepared = std::make_shared<const Prepared>(Prepared{session, std::move(constants), std::move(matmul), chosen});
  return std::make_unique<LayerKernel>(sequence, layer, std::move(prepared));
}

}  // namespace collage::cublas
