#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "collage/op/window.h"
#include "collage/transform/constants.h"
#include "collage/transform/simplify_rules.h"

namespace collage {
namespace {

using Padding = std::array<int64_t, 4>;  // top, left, bottom, right

// What nn.pad adds around height and width, when it adds one value there and nothing elsewhere.
std::optional<Padding> PlanePadding(const Expr& expr) {
  if (!IsCallOf(expr, "nn.pad")) return std::nullopt;
  const Call& pad = *expr->As<Call>();
  const Result<std::string> mode = pad.attributes.String("pad_mode", "constant");
  const AttributeValue* width = pad.attributes.Find("pad_width");
  const AttributeValue::List* widths = width ? width->AsList() : nullptr;
  if (!mode || *mode != "constant" || !widths || widths->size() != 4) return std::nullopt;
  std::array<std::array<int64_t, 2>, 4> amounts{};
  for (size_t i = 0; i < 4; ++i) {
    const AttributeValue::List* pair = (*widths)[i].AsList();
    if (!pair || pair->size() != 2) return std::nullopt;
    for (size_t side = 0; side < 2; ++side) {
      const int64_t* amount = (*pair)[side].AsInt();
      if (!amount || *amount < 0 || (i < 2 && *amount != 0)) return std::nullopt;
      amounts[i][side] = *amount;
    }
  }
  return Padding{amounts[2][0], amounts[3][0], amounts[2][1], amounts[3][1]};
}

// Values that are known to be at least zero, so that a border of zeros never wins over them.
bool IsNonNegative(const Expr& expr) {
  const OpDef* op = CalledOp(expr);
  if (!op) return false;
  if (op->name == "clip") return expr->As<Call>()->attributes.Double("a_min", -1).value_or(-1) >= 0;
  return op->name == "nn.relu" || op->name == "sigmoid" || op->name == "exp" || op->name == "abs";
}

// The least that elements of the type are: what maxima take padding for.
bool IsLeast(const Expr& value) {
  const Tensor* tensor = AsConstant(value);
  if (!tensor) return false;
  double least = -std::numeric_limits<double>::infinity();
  VisitElementType(tensor->dtype(), [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_integral_v<T>) least = static_cast<double>(std::numeric_limits<T>::lowest());
  });
  return IsConstantOf(value, least);
}

bool IsAtMostZero(const Expr& value) {
  const Tensor* tensor = AsConstant(value);
  if (!tensor || !IsFloatingPoint(tensor->dtype())) return IsConstantOf(value, 0);
  const std::vector<double> values = tensor->ToDouble();
  return values.size() == 1 && values[0] <= 0;
}

// Every window meets an element of the data, and not only padding. What a dilated one steps over counts as met where data are as wide
// as its steps.
bool WindowsMeetData(const Pooling& pooling, const Padding& padding) {
  const Window& window = pooling.window;
  for (size_t i = 0; i < 4; ++i) {
    if (padding[i] + (i < 2 ? window.pad_begin : window.pad_end)[i % 2] >= window.Span(i % 2)) return false;
  }
  for (size_t d = 0; d < 2; ++d) {
    if (pooling.input[d] - padding[d] - padding[d + 2] < window.dilation[d]) return false;
  }
  return true;
}

// The pooling with more padding, where that computes the same; null otherwise.
Result<Expr> PaddedPooling(const Expr& expr, const Expr& data, const Padding& padding, Attributes attributes) {
  const Call& call = *expr->As<Call>();
  const Expr& value = call.args[0]->As<Call>()->args[1];
  const Result<Pooling> pooling = ReadPooling(*call.args[0]->type().AsTensor(), call.attributes);
  if (!pooling || pooling->ceil_mode) return Expr();
  const Window& window = pooling->window;
  const bool padded = window.pad_begin != std::array<int64_t, 2>{} || window.pad_end != std::array<int64_t, 2>{};
  if (IsCallOf(expr, "nn.avg_pool2d")) {
    // Zeros counted before, so they must count now.
    if (!IsConstantOf(value, 0) || (padded && !pooling->count_include_pad)) return Expr();
    attributes.Set("count_include_pad", true);
  } else if (!IsLeast(value) && (padded || !IsNonNegative(data) || !IsAtMostZero(value))) {
    return Expr();
  }
  if (!WindowsMeetData(*pooling, padding)) return Expr();
  return MakeCall(call.callee, {data}, std::move(attributes), Origin::Union({call.args[0]->origin(), expr->origin()}));
}

}  // namespace

Result<Expr> SimplifyPad(const Expr& expr, const OpTable&) {
  const bool convolution = IsCallOf(expr, "nn.conv2d");
  if (!convolution && !IsCallOf(expr, "nn.avg_pool2d") && !IsCallOf(expr, "nn.max_pool2d")) return Expr();
  const Call& call = *expr->As<Call>();
  const std::optional<Padding> padding = PlanePadding(call.args[0]);
  if (!padding || (convolution && !IsConstantOf(call.args[0]->As<Call>()->args[1], 0))) return Expr();
  const TensorType& data_type = *call.args[0]->type().AsTensor();
  const Window window = convolution ? COLLAGE_TRY(ReadConvolution(data_type, *call.args[1]->type().AsTensor(), call.attributes)).window
                                    : COLLAGE_TRY(ReadPooling(data_type, call.attributes)).window;
  const std::vector<int64_t> sum = {window.pad_begin[0] + (*padding)[0], window.pad_begin[1] + (*padding)[1],
                                    window.pad_end[0] + (*padding)[2], window.pad_end[1] + (*padding)[3]};
  Attributes attributes = call.attributes;
  attributes.Set("padding", sum);
  const Expr& data = call.args[0]->As<Call>()->args[0];
  if (convolution) {
    return MakeCall(call.callee, {data, call.args[1]}, std::move(attributes), Origin::Union({call.args[0]->origin(), expr->origin()}));
  }
  return PaddedPooling(expr, data, *padding, std::move(attributes));
}

}  // namespace collage
