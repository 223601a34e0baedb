#include "collage/backend/backend.h"

#include <algorithm>
#include <array>

#include "collage/backend/cublas/cublas_lt.h"
#include "collage/backend/cublas/kernel.h"
#include "collage/backend/cublas/layer.h"
#include "collage/backend/entry.h"
#include "collage/backend/match_function.h"
#include "collage/ir/permitted_precision.h"

namespace collage::cublas {
namespace {

constexpr std::array<std::string_view, 3> kProducts = {"nn.dense", "nn.matmul", "nn.batch_matmul"};
/// What may be part of a layer behind its product; GELU by tanh is written out in several of them.
constexpr std::array<std::string_view, 7> kBehind = {"add", "nn.bias_add", "multiply", "divide", "nn.relu", "power", "tanh"};

/// cuBLAS, of it cuBLASLt: products of matrices on GPUs of CUDA, each with a factor, a bias, a tensor that is added and an activation in
/// the same kernel.
class CublasBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "cublas"; }

  [[nodiscard]] Presence Probe(const Device& device) const override {
    const Presence on = cuda::ProbeDevice(device);
    if (!on.present) return on;
    const Result<CublasLt>& library = CublasLt::Get();
    if (!library) return Presence::Absent(library.error().message);
    return Presence::Version(library->Version() + " with driver " + on.version);
  }
  [[nodiscard]] std::vector<FoundDevice> Devices() const override { return cuda::FoundDevices(); }
  [[nodiscard]] Result<std::shared_ptr<DeviceContext>> Open(const Device& device) const override { return cuda::ContextOf(device); }

  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    rules.style = BackendRules::Style::kPattern;
    for (const std::string_view op : kProducts) rules.patterns.push_back(Growing(op));
    // What scales columns is nothing in constant weights, and what shifts them is a bias.
    rules.passes = {"fold_constants", "fold_batch_norm", "eliminate_dead_code"};
    return rules;
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override {
    const Result<OpSequence> sequence = ToOpSequence(function);
    if (!sequence) return {};
    Result<Layer> layer = RecogniseLayer(*sequence);
    if (!layer) return {};
    std::vector<Variant> variants;
    const auto add = [&] {
      for (const std::string& algorithm : AlgorithmsOf(*layer, device).value_or(std::vector<std::string>()))
        variants.push_back({algorithm, std::vector<Layout>(sequence->parameters.size()), {Layout()}, layer->in_tf32});
    };
    add();
    // TF32 keeps more bits than bfloat16.
    layer->in_tf32 = layer->dtype == DType::kFloat32 && Permits(function, DType::kBFloat16);
    if (layer->in_tf32) add();
    return variants;
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    const OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
    Layer layer = COLLAGE_TRY(RecogniseLayer(sequence));
    layer.in_tf32 = variant.name.starts_with(kTf32);
    return MakeKernel(sequence, layer, variant.name, device);
  }

 private:
  /// A product and what follows it, in whatever order models write it.
  static PatternRule Growing(std::string_view op) {
    FusionRule fusion;
    fusion.begins = [op](const Expr& call) { return CalledOp(call)->name == op; };
    fusion.joins = [](const std::vector<Expr>& inside, const Expr& next) {
      const bool is_behind = std::find(kBehind.begin(), kBehind.end(), CalledOp(next)->name) != kBehind.end();
      return is_behind && CalledOp(inside.back())->name != "nn.relu" && next->type() == inside.front()->type();
    };
    const std::string name(op.substr(std::string_view("nn.").size()));
    return PatternRule::Growing("cublas." + name, std::move(fusion), Check);
  }

  static Verdict Check(const Match& match) {
    return VerdictOnSequence(match, [](const OpSequence& sequence) -> Status {
      COLLAGE_TRY(RecogniseLayer(sequence));
      return {};
    });
  }
};

}  // namespace
}  // namespace collage::cublas

COLLAGE_BACKEND(collage::cublas::CublasBackend)
