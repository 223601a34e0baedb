#include "collage/backend/merged_regions.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <unordered_map>

#include "collage/backend/partition_program.h"
#include "collage/backend/region_kernel.h"
#include "collage/ir/op_sequence.h"
#include "collage/ir/structural.h"
#include "collage/support/hash.h"

namespace collage {
namespace {

constexpr std::string_view kPrefix = "merged/";

/// What a wrapped bare call (partition_program.h) calls: the label of its composite, or nothing.
std::string LabelOf(const PartitionCall& call) {
  const Call* inner = call.function->As<Function>()->body->As<Call>();
  const Function* composite = inner ? inner->callee->As<Function>() : nullptr;
  if (!composite) return {};
  Result<std::string> label = composite->attributes.String("Composite", "");
  return label ? std::move(*label) : std::string();
}

/// A composite that a convolution or a product is part of: what its algorithm gains is more than what a conversion costs.
bool ComputesMuch(const Function& function) {
  const Result<OpSequence> sequence = ToOpSequence(function);
  return sequence && std::any_of(sequence->steps.begin(), sequence->steps.end(),
                                 [](const OpSequence::Step& step) { return step.op->kind == OpKind::kOutElementwiseFusable; });
}

/// A region taken apart: its members as calls, and the variant that each takes.
struct TakenApart {
  PartitionProgram program;
  std::vector<Variant> members;  ///< one a call
  EndpointLayouts layouts;
  std::string name;  ///< of the region's variant
};

/// Chooses variants in dataflow order and keeps account of the layouts in which every tensor can be had.
class MemberChoice {
 public:
  MemberChoice(const Backend& backend, const Device& device, PartitionProgram program)
      : backend_(backend), device_(device), forms_(program.values.size()) {
    apart_.program = std::move(program);
  }

  Result<TakenApart> Choose() {
    uint64_t hash = 0;
    for (const PartitionCall& call : apart_.program.calls) {
      Variant variant = COLLAGE_TRY(ChooseFor(call));
      for (size_t i = 0; i < call.inputs.size(); ++i) Have(call.inputs[i], variant.inputs[i]);
      for (size_t i = 0; i < call.outputs.size(); ++i) Have(call.outputs[i], variant.outputs[i]);
      hash = HashCombine(hash, HashBytes(variant.name));
      apart_.members.push_back(std::move(variant));
    }
    for (const Endpoint& input : apart_.program.inputs) apart_.layouts.inputs.push_back(FirstForm(input.value));
    for (const Endpoint& output : apart_.program.outputs) apart_.layouts.outputs.push_back(FirstForm(output.value));
    // Members are too many to be named one by one.
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
    apart_.name = std::string(kPrefix) + text;
    return std::move(apart_);
  }

 private:
  Result<Variant> ChooseFor(const PartitionCall& call) {
    const Function& function = *call.function->As<Function>();
    const auto [known, is_new] = variants_.try_emplace(StructuralHash(call.function, ForPricing()));
    if (is_new) known->second = backend_.Variants(function, device_);
    const std::vector<Variant>& variants = known->second;
    if (variants.empty()) {
      return Fail(std::string(backend_.Name()) + ": cannot run '" + call.record.name + "', a part of this region");
    }
    size_t best = 0;
    if (variants.size() > 1 && !ComputesMuch(function)) {
      for (size_t i = 1; i < variants.size(); ++i) {
        if (ConvertedBytes(call, variants[i]) < ConvertedBytes(call, variants[best])) best = i;
      }
    }
    return variants[best];
  }

  [[nodiscard]] size_t ConvertedBytes(const PartitionCall& call, const Variant& variant) const {
    size_t bytes = 0;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const size_t value = call.inputs[i];
      if (!IsThere(value, variant.inputs[i])) bytes += apart_.program.values[value].type.ByteCount();
    }
    return bytes;
  }

  /// The tensor that a view looks at.
  [[nodiscard]] size_t SourceOf(size_t value) const {
    while (apart_.program.values[value].view_of) value = *apart_.program.values[value].view_of;
    return value;
  }

  /// Constants are brought into every layout when the kernel is made, and what enters may do so in any, once.
  [[nodiscard]] bool IsThere(size_t value, const Layout& layout) const {
    if (apart_.program.values[value].constant.Defined()) return true;
    if (std::find(forms_[value].begin(), forms_[value].end(), layout) != forms_[value].end()) return true;
    const size_t source = SourceOf(value);
    if (source != value) return layout.IsPlain() && IsThere(source, Layout());
    return forms_[value].empty();
  }

  void Have(size_t value, const Layout& layout) {
    const size_t source = SourceOf(value);
    if (source != value && (forms_[source].empty() || !layout.IsPlain())) Remember(source, Layout());
    Remember(value, layout);
  }

  void Remember(size_t value, const Layout& layout) {
    std::vector<Layout>& forms = forms_[value];
    if (std::find(forms.begin(), forms.end(), layout) == forms.end()) forms.push_back(layout);
  }

  [[nodiscard]] Layout FirstForm(size_t value) const {
    if (SourceOf(value) != value || forms_[value].empty()) return {};
    return forms_[value].front();
  }

  const Backend& backend_;
  const Device& device_;
  TakenApart apart_;
  std::unordered_map<uint64_t, std::vector<Variant>> variants_;  // of members, which repeat themselves
  std::vector<std::vector<Layout>> forms_;                       // by value, in the order in which they came to be
};

/// Errors say why a function is no region of this backend.
Result<TakenApart> TakeApart(const Backend& backend, const Function& function, const Device& device) {
  const std::string name(backend.Name());
  const Expr whole = COLLAGE_TRY(MakeFunction(function.parameters, function.body));
  PartitionProgramOptions options;
  options.fallback_backend = name;
  PartitionProgram program = COLLAGE_TRY(ToPartitionProgram(IRModule::FromMain(whole), options));
  for (const PartitionCall& call : program.calls) {
    if (!LabelOf(call).starts_with(name + ".")) {
      return Fail(name + ": '" + call.record.name + "' is no composite of this backend, and no part of a region of several");
    }
  }
  if (program.calls.empty()) return Fail(name + ": nothing to compute");
  return MemberChoice(backend, device, std::move(program)).Choose();
}

/// Kernels of a region's members. Those that are equal are made once and have twins.
class MemberKernels {
 public:
  MemberKernels(const Backend& backend, const Device& device) : backend_(backend), device_(device) {}

  Result<std::unique_ptr<Kernel>> Make(const PartitionCall& call, const Variant& variant) {
    const uint64_t key = HashCombine(StructuralHash(call.function, options_), HashBytes(variant.name));
    const auto [equal, is_new] = made_.try_emplace(key, Made{call.function, variant.name, nullptr});
    const Made& made = equal->second;
    if (!is_new && made.kernel && made.variant == variant.name && StructuralEqual(made.function, call.function, options_)) {
      if (std::unique_ptr<Kernel> twin = made.kernel->Twin()) return twin;
    }
    Result<std::unique_ptr<Kernel>> kernel = backend_.Compile(*call.function->As<Function>(), device_, variant);
    if (!kernel) return Fail(kernel.error().At("member '" + call.record.name + "'"));
    if (is_new) equal->second.kernel = kernel->get();
    return kernel;
  }

 private:
  struct Made {
    Expr function;
    std::string variant;
    const Kernel* kernel;  // of the region that is being made
  };
  const Backend& backend_;
  const Device& device_;
  const StructuralOptions options_{.constants_by_value = true, .ignored_function_attributes = {"global_symbol"}};
  std::unordered_map<uint64_t, Made> made_;
};

Result<std::unique_ptr<Kernel>> CompileRegion(const Backend& backend, TakenApart apart, const Device& device) {
  MemberKernels kernels(backend, device);
  PartitionProgram& parts = apart.program;
  Program program{std::move(parts.values), {}, std::move(parts.inputs), std::move(parts.outputs)};
  for (size_t i = 0; i < parts.calls.size(); ++i) {
    PartitionCall& call = parts.calls[i];
    std::unique_ptr<Kernel> kernel = COLLAGE_TRY(kernels.Make(call, apart.members[i]));
    program.calls.push_back({std::move(call.record), std::move(kernel), std::move(call.inputs), std::move(call.outputs)});
  }
  return MakeRegionKernel(std::move(program), apart.layouts, device);
}

}  // namespace

bool IsMergedVariant(std::string_view name) { return name.starts_with(kPrefix); }

Result<Variant> MergedVariant(const Backend& backend, const Function& function, const Device& device) {
  TakenApart apart = COLLAGE_TRY(TakeApart(backend, function, device));
  return Variant{std::move(apart.name), std::move(apart.layouts.inputs), std::move(apart.layouts.outputs)};
}

Result<std::unique_ptr<Kernel>> CompileMerged(const Backend& backend, const Function& function, const Device& device,
                                              const Variant& variant) {
  TakenApart apart = COLLAGE_TRY(TakeApart(backend, function, device));
  if (apart.name != variant.name) {
    return Fail(std::string(backend.Name()) + ": there is no variant '" + variant.name + "' of this region, only '" + apart.name + "'");
  }
  return CompileRegion(backend, std::move(apart), device);
}

}  // namespace collage
