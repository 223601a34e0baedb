#include <omp.h>

#include <dnnl.hpp>

#include "collage/backend/dnnl/kernel.h"
#include "collage/backend/dnnl/plan_cache.h"
#include "collage/backend/dnnl/rules.h"
#include "collage/backend/entry.h"
#include "collage/ir/permitted_precision.h"

namespace collage {
namespace {

using dnnl_backend::Plan;

/// oneDNN: an operator library with post-operations. Every shape of a pattern is one primitive; its algorithms and layouts are
/// the variants. Choosing among them is left to the search: the library's own choice never takes Winograd.
class DnnlBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "dnnl"; }

  [[nodiscard]] Presence Probe(const Device& device) const override {
    if (device.kind != DeviceKind::kCpu) return Presence::Absent("oneDNN is used on CPUs only");
    const dnnl_version_t* version = dnnl_version();
    return Presence::Version(std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch));
  }

  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules{BackendRules::Style::kPattern, dnnl_backend::PatternTable(), {}};
    rules.callable = dnnl_backend::CallableTable();
    // What scales channels is a post-operation that reads a tensor once more, in the weights it is nothing; and what shifts them is a
    // bias. Constants must be constants for weights to be packed.
    rules.passes = {"fold_constants", "fold_batch_norm", "eliminate_dead_code"};
    return rules;
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override {
    const Result<OpSequence> sequence = ToOpSequence(function);
    if (!sequence) return {};
    std::vector<Variant> variants;
    for (const DType stored : StoredIn(function)) {
      const std::shared_ptr<const std::vector<Plan>> plans = PlansFor(*sequence, device, stored);
      for (const Plan& plan : *plans) {
        variants.push_back(VariantOf(*sequence, plan));
        variants.back().uses_precision = stored != DType::kFloat32;
      }
    }
    return variants;
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    const OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
    for (const DType stored : StoredIn(function)) {
      const std::shared_ptr<const std::vector<Plan>> plans = PlansFor(sequence, device, stored);
      for (const Plan& plan : *plans) {
        if (plan.name != variant.name) continue;
        try {
          return dnnl_backend::MakeKernel(sequence, plan, device);
        } catch (const std::exception& error) {
          return Fail("oneDNN: " + variant.name + ": " + error.what());
        }
      }
    }
    return Fail("oneDNN: there is no variant '" + variant.name + "' of this function on this processor");
  }

 private:
  static std::vector<DType> StoredIn(const Function& function) {
    if (!Permits(function, DType::kBFloat16)) return {DType::kFloat32};
    return {DType::kFloat32, DType::kBFloat16};
  }

  // The library chooses implementations for the number of threads that OpenMP would give.
  static std::shared_ptr<const std::vector<Plan>> PlansFor(const OpSequence& sequence, const Device& device, DType stored) {
    omp_set_num_threads(device.threads);
    try {
      return dnnl_backend::CachedPlans(sequence, device.threads, stored);
    } catch (const std::exception&) {
      return std::make_shared<const std::vector<Plan>>();
    }
  }

  static Variant VariantOf(const OpSequence& sequence, const Plan& plan) {
    Variant variant{plan.name, std::vector<Layout>(sequence.parameters.size()), std::vector<Layout>(1)};
    for (const dnnl_backend::Argument& argument : plan.arguments) {
      if (argument.id == DNNL_ARG_DST) variant.outputs[0] = argument.layout;
      for (size_t i = 0; i < sequence.parameters.size(); ++i) {
        const bool accumulated = argument.id == DNNL_ARG_DST && plan.accumulated == sequence.parameters[i];
        if (argument.value == sequence.parameters[i] || accumulated) variant.inputs[i] = argument.layout;
      }
    }
    return variant;
  }
};

}  // namespace
}  // namespace collage

COLLAGE_BACKEND(collage::DnnlBackend)
