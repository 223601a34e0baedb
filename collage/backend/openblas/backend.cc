#include <cblas.h>

#include <algorithm>
#include <array>

#include "collage/backend/entry.h"
#include "collage/backend/openblas/core_type.h"
#include "collage/backend/openblas/product.h"

namespace collage::openblas {
namespace {

/// cblas_sgemm over the batches. OpenBLAS packs its operands in each call, so it is for small products; those of constant weights
/// are for libraries that keep them packed.
class ProductKernel final : public Kernel {
 public:
  ProductKernel(const OpSequence& sequence, Product product, int threads) : product_(std::move(product)), threads_(threads) {
    for (const size_t value : sequence.parameters) inputs_.push_back({sequence.values[value].type, Layout()});
    outputs_.push_back({sequence.values[product_.result].type, Layout()});
    a_ = SourceOf(sequence, product_.a.value);
    b_ = SourceOf(sequence, product_.b.value);
    if (product_.bias) bias_ = *sequence.values[*product_.bias].constant;
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* /*workspace*/) override {
    openblas_set_num_threads(threads_);
    const float* a = At(a_, inputs);
    const float* b = At(b_, inputs);
    auto* result = static_cast<float*>(outputs[0]);
    for (size_t batch = 0; batch < product_.a.offsets.size(); ++batch, result += product_.rows * product_.columns) {
      if (product_.bias) FillWithBias(result);
      Multiply(a + product_.a.offsets[batch], b + product_.b.offsets[batch], result);
      if (product_.relu)
        std::transform(result, result + product_.rows * product_.columns, result, [](float x) { return std::max(x, 0.0F); });
    }
    return {};
  }

 private:
  /// A constant, or the number of a parameter.
  struct Source {
    Tensor constant;
    size_t port = 0;
  };

  static Source SourceOf(const OpSequence& sequence, size_t value) {
    if (sequence.values[value].constant) return {*sequence.values[value].constant};
    const auto at = std::find(sequence.parameters.begin(), sequence.parameters.end(), value);
    return {{}, static_cast<size_t>(at - sequence.parameters.begin())};
  }

  static const float* At(const Source& source, std::span<const void* const> inputs) {
    return source.constant.Defined() ? source.constant.Data<float>() : static_cast<const float*>(inputs[source.port]);
  }

  void FillWithBias(float* result) const {
    const std::span<const float> bias = bias_.Values<float>();
    for (int64_t row = 0; row < product_.rows; ++row) std::copy(bias.begin(), bias.end(), result + row * product_.columns);
  }

  void Multiply(const float* a, const float* b, float* result) const {
    cblas_sgemm(CblasRowMajor, product_.a.transposed ? CblasTrans : CblasNoTrans, product_.b.transposed ? CblasTrans : CblasNoTrans,
                static_cast<blasint>(product_.rows), static_cast<blasint>(product_.columns), static_cast<blasint>(product_.depth), 1.0F, a,
                static_cast<blasint>(product_.a.stride), b, static_cast<blasint>(product_.b.stride), product_.bias ? 1.0F : 0.0F, result,
                static_cast<blasint>(product_.columns));
  }

  Product product_;
  int threads_;
  Source a_;
  Source b_;
  Tensor bias_;
};

class OpenBlasBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "openblas"; }

  [[nodiscard]] Presence Probe(const Device& device) const override {
    if (device.kind != DeviceKind::kCpu) return Presence::Absent("OpenBLAS runs on the CPU only");
    if (openblas_get_parallel() == OPENBLAS_THREAD)
      return Presence::Absent("this OpenBLAS has threads of its own, which fight the others; install its OpenMP build");
    // "OpenBLAS 0.3.21 ...": the version alone, and whose kernels it takes, by which prices differ.
    const std::string config = openblas_get_config();
    const size_t begin = config.find(' ') + 1;
    return Presence::Version(config.substr(begin, config.find(' ', begin) - begin) + " for " + CoreType());
  }

  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    rules.style = BackendRules::Style::kPattern;
    for (const char* op : {"nn.dense", "nn.matmul", "nn.batch_matmul"}) AddRules(op, rules.patterns);
    std::stable_sort(rules.patterns.begin(), rules.patterns.end(),
                     [](const PatternRule& a, const PatternRule& b) { return a.label.size() > b.label.size(); });
    // A product has no room for factors behind it but in its weights.
    rules.passes = {"fold_constants", "fold_batch_norm", "eliminate_dead_code"};
    return rules;
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& /*device*/) const override {
    const Result<OpSequence> sequence = ToOpSequence(function);
    if (!sequence || !RecogniseProduct(*sequence)) return {};
    return {Variant{kVariant, std::vector<Layout>(sequence->parameters.size()), {Layout()}}};
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    const OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
    if (variant.name != kVariant) return Fail("openblas: there is no variant '" + variant.name + "'");
    return std::make_unique<ProductKernel>(sequence, COLLAGE_TRY(RecogniseProduct(sequence)), device.threads);
  }

 private:
  static constexpr const char* kVariant = "sgemm";

  static Verdict Check(const Match& match) {
    for (const auto& [name, expr] : match.captures) {
      const TensorType* type = expr->type().AsTensor();
      if (!type || type->dtype != DType::kFloat32) return Verdict::Reject("openblas: float32 is supported");
      if (type->ElementCount() == 0 || type->shape.empty()) return Verdict::Reject("openblas: a matrix has no elements or dimensions");
    }
    const Expr variable = match.Find("b");
    if (variable && variable->As<Constant>()) return Verdict::Reject("openblas: a constant matrix is taken inside");
    const TensorType& result = *match.root->type().AsTensor();
    const Expr bias = match.Find("bias");
    if (bias &&
        (bias->type().AsTensor()->ElementCount() != result.shape.back() || bias->type().AsTensor()->shape.back() != result.shape.back()))
      return Verdict::Reject("openblas: what is added is not one value for each column");
    const Expr biased = match.Find("bias_add");
    if (!biased) return Verdict::Accept();
    const int64_t axis = biased->As<Call>()->attributes.Int("axis", 1).value_or(0);
    if (axis != -1 && axis + 1 != static_cast<int64_t>(result.shape.size()))
      return Verdict::Reject("openblas: the bias is not for the columns");
    return Verdict::Accept();
  }

  static void AddRules(const std::string& op, std::vector<PatternRule>& table) {
    using pattern::CallOf;
    const std::string label = "openblas." + op.substr(3);
    const Pattern weight = pattern::Or({pattern::IsConstant().As("weight"), pattern::Wildcard().As("b")});
    const Pattern product = CallOf(op, {pattern::Wildcard().As("a"), weight});
    const Pattern bias = pattern::IsConstant().As("bias");
    const Pattern biased = pattern::Or({CallOf("nn.bias_add", {product, bias}).As("bias_add"), CallOf("add", {product, bias})});
    for (const auto& [suffix, form] : std::array<std::pair<const char*, Pattern>, 2>{{{"", product}, {"_bias", biased}}}) {
      table.push_back({label + suffix, form, Check});
      table.push_back({label + suffix + "_relu", CallOf("nn.relu", {form}), Check});
    }
  }
};

}  // namespace
}  // namespace collage::openblas

COLLAGE_BACKEND(collage::openblas::OpenBlasBackend)
