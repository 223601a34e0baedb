#include "collage/backend/backend.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "collage/backend/cudnn/kernel.h"
#include "collage/backend/cudnn/layer.h"
#include "collage/backend/entry.h"
#include "collage/backend/match_function.h"
#include "collage/ir/permitted_precision.h"

namespace collage::cudnn {
namespace {

/// Behind the name of a choice, where channels lie last; as their layout is called for images.
constexpr std::string_view kChannelsLast = "/acdb";
/// Before it, where it computes in TF32.
constexpr std::string_view kTf32 = "tf32/";

/// What activations that are written out are made of, too. Of which chains there is a graph is for the check to say.
bool IsPointwise(const std::string& op) {
  static const std::unordered_set<std::string_view> names = {"nn.bias_add", "add",           "subtract", "multiply", "divide", "power",
                                                             "nn.relu",     "nn.leaky_relu", "clip",     "sigmoid",  "tanh",   "erf"};
  return names.contains(op);
}

/// cuDNN: convolutions with what follows them, transposed ones and poolings, each as one graph of its operations. A variant is one of its
/// engines, with a setting of its knobs.
class CudnnBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "cudnn"; }

  [[nodiscard]] Presence Probe(const Device& device) const override {
    const Presence on = cuda::ProbeDevice(device);
    if (!on.present) return on;
    if (!Library::Get()) return Presence::Absent(Library::Get().error().message);
    return Presence::Version(Library::Get()->Version() + " with driver " + on.version);
  }
  [[nodiscard]] std::vector<FoundDevice> Devices() const override { return cuda::FoundDevices(); }
  [[nodiscard]] Result<std::shared_ptr<DeviceContext>> Open(const Device& device) const override { return cuda::ContextOf(device); }

  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    for (const char* op : {"nn.conv2d", "nn.conv3d", "nn.conv2d_transpose", "nn.conv3d_transpose"}) rules.patterns.push_back(Chain(op));
    for (const char* op :
         {"nn.max_pool2d", "nn.avg_pool2d", "nn.global_max_pool2d", "nn.global_avg_pool2d", "nn.max_pool3d", "nn.avg_pool3d"})
      rules.patterns.push_back({Label(op), pattern::CallOf(op, {pattern::Wildcard().As(kOutside)}), Check});
    // What scales channels is nothing in the weights, and what shifts them is a bias.
    rules.passes = {"fold_constants", "fold_batch_norm", "eliminate_dead_code"};
    return rules;
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override {
    if (device.kind != DeviceKind::kCuda) return {};
    const Result<OpSequence> sequence = ToOpSequence(function);
    if (!sequence) return {};
    Result<Layer> layer = RecogniseLayer(*sequence);
    if (!layer) return {};
    const Result<Session*> session = Session::Of(device);
    if (!session) return {};
    std::vector<Variant> variants = VariantsOf(*sequence, *layer, **session);
    // TF32 keeps more bits than bfloat16. A pooling has no products.
    layer->in_tf32 = layer->weight && layer->dtype == DType::kFloat32 && Permits(function, DType::kBFloat16);
    if (layer->in_tf32) std::ranges::move(VariantsOf(*sequence, *layer, **session), std::back_inserter(variants));
    return variants;
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    const OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
    Layer layer = COLLAGE_TRY(RecogniseLayer(sequence));
    std::string_view name = variant.name;
    layer.in_tf32 = name.starts_with(kTf32);
    if (layer.in_tf32) name.remove_prefix(kTf32.size());
    const bool channels_last = name.ends_with(kChannelsLast);
    if (channels_last) name.remove_suffix(kChannelsLast.size());
    const std::optional<Choice> choice = ChoiceNamed(name);
    if (!choice) return Fail("cudnn: there is no variant '" + variant.name + "' of this function");
    return MakeKernel(sequence, layer, channels_last, *choice, *COLLAGE_TRY(Session::Of(device)));
  }

 private:
  static std::string Label(const std::string& op) { return "cudnn." + op.substr(std::string_view("nn.").size()); }

  /// An operator and what follows it element by element.
  static PatternRule Chain(const std::string& op) {
    FusionRule fusion;
    fusion.begins = [op](const Expr& call) { return CalledOp(call)->name == op; };
    fusion.joins = [](const std::vector<Expr>& inside, const Expr& next) {
      return IsPointwise(CalledOp(next)->name) && next->type() == inside.front()->type();
    };
    return PatternRule::Growing(Label(op), std::move(fusion), Check);
  }

  static Verdict Check(const Match& match) {
    return VerdictOnSequence(match, [](const OpSequence& sequence) -> Status {
      COLLAGE_TRY(RecogniseLayer(sequence));
      return {};
    });
  }

  static std::vector<Variant> VariantsOf(const OpSequence& sequence, const Layer& layer, Session& session) {
    std::vector<Variant> variants;
    for (const bool channels_last : {false, true}) {
      // Tensor cores read channels last. For engines that do not use them it was not measured: all would have to be priced twice.
      const bool by_tensor_cores = layer.in_tf32 || layer.dtype != DType::kFloat32;
      if (channels_last && !by_tensor_cores && !variants.empty()) break;
      for (const Choice& choice : Choices(sequence, layer, channels_last, session))
        variants.push_back(VariantOf(sequence, layer, channels_last, choice));
    }
    return variants;
  }

  /// None where the library refuses the graph.
  static std::vector<Choice> Choices(const OpSequence& sequence, const Layer& layer, bool channels_last, Session& session) {
    const std::unique_lock<std::mutex> lock = session.Lock();
    const Result<Graph> graph = MakeGraph(sequence, layer, channels_last, session.handle());
    if (!graph) return {};
    return ChoicesOf(*graph, layer).value_or(std::vector<Choice>());
  }

  static Variant VariantOf(const OpSequence& sequence, const Layer& layer, bool channels_last, const Choice& choice) {
    const auto layout = [&](size_t value) { return LayoutOf(sequence.values[value].type.shape, channels_last); };
    std::string name = std::string(layer.in_tf32 ? kTf32 : "") + NameOf(choice) + std::string(channels_last ? kChannelsLast : "");
    Variant variant{std::move(name), {}, {layout(layer.result)}, layer.in_tf32};
    for (const size_t parameter : sequence.parameters) variant.inputs.push_back(layout(parameter));
    return variant;
  }
};

}  // namespace
}  // namespace collage::cudnn

COLLAGE_BACKEND(collage::cudnn::CudnnBackend)
