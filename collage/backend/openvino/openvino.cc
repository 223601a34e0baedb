// OpenVINO's CPU plugin as a graph compiler: a region goes to it as the bytes of an ONNX model, a whole model also as it came, and what it
// makes of it (layouts, fusions, algorithms) is its own affair.

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "collage/backend/entry.h"
#include "collage/backend/onnx_variants.h"
#include "collage/backend/openvino/integer_weights.h"
#include "collage/backend/openvino/session.h"
#include "collage/backend/openvino/supports.h"
#include "collage/ir/original_model.h"
#include "collage/ir/permitted_precision.h"
#include "collage/ir/visit.h"
#include "collage/onnx/original.h"
#include "collage/op/integer_weights.h"
#include "collage/tensor/float8.h"

namespace collage::openvino {
namespace {

bool IsOneOf(const Expr& expr, std::initializer_list<std::string_view> ops) {
  return std::any_of(ops.begin(), ops.end(), [&](std::string_view op) { return IsCallOf(expr, op); });
}

/// Between two products of computed tensors 2026.4 gets a softmax in bfloat16 wrong by more than its values where something is added to the
/// scores (a mask), and it finds no kernels for products of integers then. What is only scaled in between is right.
bool IsRightInBFloat16(const Function& function) {
  bool has_bytes = false;
  bool has_products = false;
  bool has_masks = false;
  PostOrder(function.body, [&](const Expr& expr) {
    const TensorType* type = expr->type().AsTensor();
    has_bytes = has_bytes || (type && (type->dtype == DType::kInt8 || type->dtype == DType::kUInt8));
    const Call* call = CalledOp(expr) ? expr->As<Call>() : nullptr;
    if (IsOneOf(expr, {"nn.matmul", "nn.batch_matmul"}) && !call->args[1]->As<Constant>()) has_products = true;
    if (IsCallOf(expr, "nn.softmax") && !IsOneOf(call->args[0], {"nn.matmul", "nn.batch_matmul", "multiply", "divide"})) has_masks = true;
  });
  return !has_bytes && !(has_products && has_masks);
}

/// A product of float32 with integers that are dequantised is one kernel to its compiler, which reads the integers; the executed graph of
/// 2026.4 says so (FullyConnected with weights of i8). A model as it came has its own weights.
bool UsesPermit(const Function& function) {
  if (Permits(function, DType::kBFloat16)) return HasBFloat16() && IsRightInBFloat16(function);
  return Permits(function, DType::kInt8) && !CallOfOriginal(function) && HasRoundableWeights(function);
}

/// What lies beyond the range of float8 the plugin of 2026.4 turns into NaN; ONNX has the largest number there, unless a model says
/// otherwise. No comparison need meet such numbers.
bool MakesFloat8(const Function& function) {
  bool makes = false;
  PostOrder(function.body, [&](const Expr& expr) {
    const TensorType* type = expr->type().AsTensor();
    makes = makes || (type && CalledOp(expr) && IsFloat8(type->dtype));
  });
  return makes;
}

class OpenVinoBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "openvino"; }

  [[nodiscard]] Presence Probe(const Device& device) const override {
    if (device.kind != DeviceKind::kCpu) return Presence::Absent("it is used for the CPU only");
    const auto version = RuntimeVersion();
    return version ? Presence::Version(*version) : Presence::Absent(version.error().message);
  }

  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    rules.style = BackendRules::Style::kPredicate;
    rules.supports = [](const Expr& call) { return Supports(call); };
    // No passes of ours: its compiler folds constants and normalisations in every region itself.
    return rules;
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override {
    if (device.kind != DeviceKind::kCpu || MakesFloat8(function)) return {};
    std::vector<Variant> variants = OnnxVariants(function, Supports);
    return UsesPermit(function) ? WithPermitted(std::move(variants), function) : variants;
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    const std::string_view form = std::string_view(variant.name).substr(0, variant.name.find('/'));
    const bool is_permitted = form.size() < variant.name.size();
    const std::optional<Precision> precision = is_permitted ? PermittedPrecision(function) : std::nullopt;
    if (is_permitted && (!precision || variant.name.substr(form.size() + 1) != NameOf(*precision)))
      return Fail("openvino: the function does not permit its variant '" + variant.name + "'");
    const Arithmetic arithmetic = precision && precision->stored == DType::kBFloat16 ? Arithmetic::kBFloat16 : Arithmetic::kFloat32;
    if (form == kOriginalVariant)
      return CompileModel([&](LargeWeightsAs large) { return OriginalForm(function, large); }, device, arithmetic);
    if (form == kRewrittenVariant) {
      const bool rounds_weights = precision && precision->stored == DType::kInt8;
      const Expr written = COLLAGE_TRY(rounds_weights ? WithRoundedWeights(function) : WithIntegerWeights(function));
      return CompileModel([&](LargeWeightsAs large) { return RewrittenForm(*written->As<Function>(), large); }, device, arithmetic);
    }
    return Fail("openvino: it has no variant '" + variant.name + "'");
  }
};

}  // namespace

COLLAGE_BACKEND(OpenVinoBackend)

}  // namespace collage::openvino
