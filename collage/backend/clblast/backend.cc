#include <clblast.h>

#include <algorithm>
#include <array>

#include "collage/backend/clblast/kernel.h"
#include "collage/backend/clblast/layer.h"
#include "collage/backend/entry.h"
#include "collage/backend/match_function.h"

namespace collage::clblast_layers {
namespace {

constexpr std::array<int, 3> kVersion{CLBLAST_VERSION_MAJOR, CLBLAST_VERSION_MINOR, CLBLAST_VERSION_PATCH};

/// CLBlast: products of matrices on OpenCL devices, and convolutions by such products. What stands around them is `opencl`'s: it computes a
/// bias and what follows in one kernel, or inside of the next one.
class ClblastBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "clblast"; }

  [[nodiscard]] Presence Probe(const Device& device) const override {
    const Presence on = opencl::ProbeDevice(device);
    const std::string version = std::to_string(kVersion[0]) + "." + std::to_string(kVersion[1]) + "." + std::to_string(kVersion[2]);
    return on.present ? Presence::Version(version + " with driver " + on.version) : on;
  }
  [[nodiscard]] std::vector<FoundDevice> Devices() const override { return opencl::FoundDevices(); }
  [[nodiscard]] Result<std::shared_ptr<DeviceContext>> Open(const Device& device) const override { return opencl::ContextOf(device); }

  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    for (const char* op : {"nn.dense", "nn.matmul", "nn.batch_matmul"}) AddProduct(op, rules.patterns);
    rules.patterns.push_back({"clblast.conv2d", CallOfTwo("nn.conv2d"), Check});
    std::stable_sort(rules.patterns.begin(), rules.patterns.end(),
                     [](const PatternRule& a, const PatternRule& b) { return a.label.size() > b.label.size(); });
    return rules;
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override {
    std::vector<Variant> variants;
    const Result<OpSequence> sequence = ToOpSequence(function);
    if (device.kind != DeviceKind::kOpenCl || !sequence) return variants;
    const Result<Layer> layer = RecogniseLayer(*sequence);
    if (!layer) return variants;
    for (const std::string& method : MethodsOf(*layer))
      variants.push_back({method, std::vector<Layout>(sequence->parameters.size()), {Layout()}});
    return variants;
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    const OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
    const Layer layer = COLLAGE_TRY(RecogniseLayer(sequence));
    const std::vector<std::string> methods = MethodsOf(layer);
    if (std::find(methods.begin(), methods.end(), variant.name) == methods.end())
      return Fail("clblast: there is no variant '" + variant.name + "' of this function");
    return MakeKernel(sequence, layer, variant.name, COLLAGE_TRY(opencl::ContextOf(device)));
  }

 private:
  static Pattern Operand(const std::string& name) { return pattern::Or({pattern::IsConstant(), pattern::Wildcard().As(name)}); }
  static Pattern CallOfTwo(const std::string& op) { return pattern::CallOf(op, {Operand("outside0"), Operand("outside1")}); }

  static void AddProduct(const std::string& op, std::vector<PatternRule>& table) {
    using pattern::CallOf;
    const std::string label = "clblast." + op.substr(std::string("nn.").size());
    const Pattern product = CallOfTwo(op);
    const Pattern factor = pattern::IsConstant();
    const Pattern scaled =
        pattern::Or({CallOf("multiply", {product, factor}), CallOf("multiply", {factor, product}), CallOf("divide", {product, factor})});
    const Pattern added = pattern::Wildcard().As("outside2");
    for (const auto& [suffix, form] : std::array<std::pair<const char*, Pattern>, 2>{{{"", product}, {"_scaled", scaled}}}) {
      table.push_back({label + suffix, form, Check});
      table.push_back({label + suffix + "_sum", pattern::Or({CallOf("add", {form, added}), CallOf("add", {added, form})}), Check});
    }
  }

  static Verdict Check(const Match& match) {
    for (const auto& [name, expr] : match.captures) {
      if (expr->As<Constant>()) return Verdict::Reject("clblast: a constant is added by others");
    }
    return VerdictOnSequence(match, [](const OpSequence& sequence) -> Status {
      COLLAGE_TRY(RecogniseLayer(sequence));
      return {};
    });
  }
};

}  // namespace
}  // namespace collage::clblast_layers

COLLAGE_BACKEND(collage::clblast_layers::ClblastBackend)
