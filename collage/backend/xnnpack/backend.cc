#include "collage/backend/backend.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

#include "collage/backend/entry.h"
#include "collage/backend/match_function.h"
#include "collage/backend/xnnpack/layer.h"
#include "collage/backend/xnnpack/operator.h"
#include "collage/backend/xnnpack/thread_pool.h"
#include "collage/support/file.h"
#include "collage/support/hash.h"
#include "collage/support/shared_object.h"

namespace collage::xnnpack {
namespace {

constexpr const char* kOfImages = "nhwc";
constexpr const char* kOfRows = "rows";

class LayerKernel final : public Kernel {
 public:
  LayerKernel(Port data, Port result, Operator made, int threads) : operator_(std::move(made)), team_{threads} {
    inputs_ = {std::move(data)};
    outputs_ = {std::move(result)};
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* /*workspace*/) override {
    const pthreadpool_t pool = team_.AsPool();
    xnn_status status = operator_.set_up(static_cast<const float*>(inputs[0]), static_cast<float*>(outputs[0]), pool);
    if (status == xnn_status_success) status = xnn_run_operator(operator_.handle.get(), pool);
    if (status != xnn_status_success) return Fail(std::string("XNNPACK: ") + Describe(status));
    return {};
  }

 private:
  Operator operator_;
  TeamShare team_;
};

// Where the physical order is the row-major one anyway the layout is plain, so that no conversion is charged.
Layout LayoutOf(const Layer& layer, const Shape& shape) {
  if (!IsOfImages(layer) || shape[1] == 1 || shape[2] * shape[3] == 1) return {};
  return Layout::Of("acdb");
}

/// XNNPACK: operators for images whose channels lie last, made for small networks on small processors. Each takes a bias and bounds.
class XnnpackBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "xnnpack"; }

  [[nodiscard]] Presence Probe(const Device& device) const override {
    if (device.kind != DeviceKind::kCpu) return Presence::Absent("XNNPACK is used on CPUs only");
    // Those of older processors read up to three elements beyond what they are given.
    if (!__builtin_cpu_supports("avx")) return Presence::Absent("XNNPACK's kernels for processors without AVX read beyond their tensors");
    static const xnn_status status = xnn_initialize(/*allocator=*/nullptr);
    if (status != xnn_status_success) return Presence::Absent(std::string("XNNPACK: ") + Describe(status));
    static const std::string version = VersionOfLibrary();
    return Presence::Version(version);
  }

  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    for (const char* op : {"nn.conv2d", "nn.dense"}) AddWeighted(op, rules.patterns);
    for (const char* op : {"nn.max_pool2d", "nn.avg_pool2d", "nn.global_avg_pool2d"})
      rules.patterns.push_back({Label(op), pattern::CallOf(op, {pattern::Wildcard().As(kOutside)}), Check});
    std::stable_sort(rules.patterns.begin(), rules.patterns.end(),
                     [](const PatternRule& a, const PatternRule& b) { return a.label.size() > b.label.size(); });
    // What scales channels is nothing in the weights, and what shifts them is a bias.
    rules.passes = {"fold_constants", "fold_batch_norm", "eliminate_dead_code"};
    return rules;
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& /*device*/) const override {
    const Result<OpSequence> sequence = ToOpSequence(function);
    if (!sequence) return {};
    const Result<Layer> layer = RecogniseLayer(*sequence);
    if (!layer) return {};
    return {VariantOf(*sequence, *layer)};
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    const OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
    const Layer layer = COLLAGE_TRY(RecogniseLayer(sequence));
    const Variant own = VariantOf(sequence, layer);
    if (variant.name != own.name) return Fail("XNNPACK: there is no variant '" + variant.name + "' of this function");
    Operator made = COLLAGE_TRY(MakeOperator(sequence, layer));
    const Port data{sequence.values[layer.base->inputs[0]].type, own.inputs[0]};
    const Port result{sequence.values[sequence.results[0]].type, own.outputs[0]};
    return std::make_unique<LayerKernel>(data, result, std::move(made), device.threads);
  }

 private:
  static Variant VariantOf(const OpSequence& sequence, const Layer& layer) {
    const Shape& data = sequence.values[layer.base->inputs[0]].type.shape;
    const Shape& result = sequence.values[sequence.results[0]].type.shape;
    return {IsOfImages(layer) ? kOfImages : kOfRows, {LayoutOf(layer, data)}, {LayoutOf(layer, result)}};
  }

  // It has no version of its own: what it does depends on its bytes.
  static std::string VersionOfLibrary() {
    const Result<std::string> bytes = ReadFile(SharedObjectOf(&xnn_initialize));
    return bytes ? fmt::format("of bytes {:016x}", HashBytes(*bytes)) : "unknown";
  }

  static std::string Label(const std::string& op) { return "xnnpack." + op.substr(std::string("nn.").size()); }

  static void AddWeighted(const std::string& op, std::vector<PatternRule>& table) {
    using pattern::CallOf;
    const Pattern bare = CallOf(op, {pattern::Wildcard().As(kOutside), pattern::IsConstant()});
    const Pattern biased =
        pattern::Or({CallOf("nn.bias_add", {bare, pattern::IsConstant()}), CallOf("add", {bare, pattern::IsConstant()})});
    for (const auto& [suffix, form] : std::array<std::pair<const char*, Pattern>, 2>{{{"", bare}, {"_bias", biased}}}) {
      table.push_back({Label(op) + suffix, form, Check});
      table.push_back({Label(op) + suffix + "_relu", CallOf("nn.relu", {form}), Check});
      table.push_back({Label(op) + suffix + "_clip", CallOf("clip", {form}), Check});
    }
  }

  static Verdict Check(const Match& match) {
    return VerdictOnSequence(match, [](const OpSequence& sequence) -> Status {
      COLLAGE_TRY(RecogniseLayer(sequence));
      return {};
    });
  }
};

}  // namespace
}  // namespace collage::xnnpack

COLLAGE_BACKEND(collage::xnnpack::XnnpackBackend)
