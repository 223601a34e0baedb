#include "collage/transform/fold_batch_norm.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "collage/ir/visit.h"
#include "collage/op/table.h"
#include "collage/transform/constants.h"
#include "collage/transform/function_pass.h"
#include "collage/transform/scaled_weight.h"

namespace collage {
namespace {

// y = data * scale + shift, one of each a channel, or one for all: there may be more channels than memory has room for numbers.
struct Affine {
  Expr data;
  size_t axis;
  std::vector<double> scale;
  std::vector<double> shift;
  Origin origin;
  bool scales = true;  // false: an addition only
};

Result<size_t> AxisOf(const Call& call, size_t rank) {
  const int64_t axis = COLLAGE_TRY(call.attributes.Int("axis", 1));
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

std::optional<Affine> ReadBatchNorm(const Expr& expr) {
  const Call& call = *expr->As<Call>();
  const Shape& shape = call.args[0]->type().AsTensor()->shape;
  const Result<size_t> axis = AxisOf(call, shape.size());
  std::vector<std::vector<double>> parameters;
  for (size_t i = 1; i < 5; ++i) {
    std::optional<std::vector<double>> values = FloatValues(call.args[i]);
    if (!values) return std::nullopt;
    parameters.push_back(*std::move(values));
  }
  if (!axis) return std::nullopt;
  const double epsilon = call.attributes.Double("epsilon", 1e-5).value_or(1e-5);
  const bool center = call.attributes.Bool("center", true).value_or(true);
  const bool scale = call.attributes.Bool("scale", true).value_or(true);
  Affine affine{call.args[0], *axis, {}, {}, expr->origin()};
  for (size_t c = 0; c < parameters[0].size(); ++c) {
    const double factor = (scale ? parameters[0][c] : 1) / std::sqrt(parameters[3][c] + epsilon);
    affine.scale.push_back(factor);
    affine.shift.push_back((center ? parameters[1][c] : 0) - parameters[2][c] * factor);
  }
  return affine;
}

// The dimension of channels in the result of what scales can be folded into.
size_t ChannelAxis(const Shape& shape) { return shape.size() == 4 ? 1 : shape.size() - 1; }

std::optional<Affine> ReadBiasAdd(const Expr& expr) {
  const Call& call = *expr->As<Call>();
  const Shape& shape = call.args[0]->type().AsTensor()->shape;
  const Result<size_t> axis = AxisOf(call, shape.size());
  std::optional<std::vector<double>> bias = FloatValues(call.args[1]);
  if (!axis || !bias) return std::nullopt;
  std::vector<double> ones(bias->size(), 1);
  return Affine{call.args[0], *axis, std::move(ones), *std::move(bias), expr->origin(), false};
}

// Arithmetic with a constant operand, which for add and multiply may stand first.
std::optional<Affine> ReadArithmetic(const Expr& expr, const std::string& name) {
  const Call& call = *expr->As<Call>();
  const bool swaps = name == "add" || name == "multiply";
  for (size_t place : {size_t{1}, size_t{0}}) {
    if (place == 0 && !swaps) break;
    const Expr& data = call.args[1 - place];
    // Nothing can be folded into what is not computed.
    if (!(data->type() == expr->type()) || !CalledOp(data)) continue;
    const Shape& shape = expr->type().AsTensor()->shape;
    if (shape.size() < 2) return std::nullopt;
    const size_t axis = ChannelAxis(shape);
    std::optional<std::vector<double>> values = PerChannelValues(call.args[place], shape, axis);
    if (!values) continue;
    Affine affine{data, axis, std::vector<double>(values->size(), 1), std::vector<double>(values->size(), 0), expr->origin(), false};
    for (size_t c = 0; c < values->size(); ++c) {
      if (name == "add") affine.shift[c] = (*values)[c];
      if (name == "subtract") affine.shift[c] = -(*values)[c];
      if (name == "multiply") affine.scale[c] = (*values)[c];
      if (name == "divide") affine.scale[c] = 1 / (*values)[c];
    }
    affine.scales = name == "multiply" || name == "divide";
    return affine;
  }
  return std::nullopt;
}

double OfChannel(const std::vector<double>& values, size_t channel) { return values[values.size() == 1 ? 0 : channel]; }

// A call that scales or shifts channels by constants.
std::optional<Affine> ReadAffine(const Expr& expr) {
  const OpDef* op = CalledOp(expr);
  if (!op) return std::nullopt;
  if (op->name == "nn.bias_add") return ReadBiasAdd(expr);
  const bool arithmetic = op->name == "add" || op->name == "subtract" || op->name == "multiply" || op->name == "divide";
  return arithmetic ? ReadArithmetic(expr, op->name) : std::nullopt;
}

bool IsFinite(const Affine& affine) {
  const auto finite = [](double value) { return std::isfinite(value); };
  return std::all_of(affine.scale.begin(), affine.scale.end(), finite) && std::all_of(affine.shift.begin(), affine.shift.end(), finite);
}

class BatchNormFolder {
 public:
  explicit BatchNormFolder(const Expr& function) : function_(function), uses_(CountUses(function)) {
    PostOrder(function, [&](const Expr& expr) {
      if (const TupleGetItem* item = expr->As<TupleGetItem>()) ++projections_[item->tuple.get()];
    });
  }

  Result<Expr> Run() {
    const auto fold = [&](const Expr& original, const Expr& expr) -> Result<Expr> {
      Expr folded = COLLAGE_TRY(Fold(expr, uses_.at(original.get())));
      // What was made anew is used as often as what it stands for.
      if (folded != original) {
        uses_[folded.get()] += uses_.at(original.get());
        const auto projections = projections_.find(original.get());
        if (projections != projections_.end()) projections_[folded.get()] = projections->second;
        made_.push_back(folded);
      }
      return folded;
    };
    return Rewrite(function_, fold, MayEnter);
  }

 private:
  bool IsUsedOnce(const Expr& expr) const {
    const auto at = uses_.find(expr.get());
    return at == uses_.end() || at->second == 1;  // absent: made here, inside something else
  }

  // `uses`: of what `expr` stands for.
  Result<Expr> Fold(const Expr& expr, size_t uses) {
    if (const TupleGetItem* item = expr->As<TupleGetItem>(); item && IsCallOf(item->tuple, "nn.batch_norm"))
      return FoldProjection(expr, *item, uses);
    if (uses == 1) COLLAGE_TRY_STATUS(LookThroughFlattening(expr));
    if (const Expr folded = COLLAGE_TRY(FoldIntoConsumer(expr))) return folded;
    const std::optional<Affine> step = ReadAffine(expr);
    if (!step || !IsFinite(*step)) return expr;
    const Expr folded = COLLAGE_TRY(FoldIntoProducer(*step));
    return folded ? folded : expr;
  }

  // Statistics are passed through; the normalised data is folded once, however many projections show it.
  Result<Expr> FoldProjection(const Expr& expr, const TupleGetItem& item, size_t uses) {
    const Call& call = *item.tuple->As<Call>();
    if (item.index > 0) return call.args[2 + item.index];
    const auto done = normalised_.find(item.tuple.get());
    if (done != normalised_.end()) return done->second;
    const std::optional<Affine> step = ReadBatchNorm(item.tuple);
    if (!step || !IsFinite(*step)) return expr;
    made_.push_back(item.tuple);
    Expr folded;
    if (uses_.at(item.tuple.get()) == projections_.at(item.tuple.get())) folded = COLLAGE_TRY(FoldIntoProducer(*step));
    if (!folded) {
      folded = COLLAGE_TRY(MultiplyAndAdd(*step));
      if (uses_.at(item.tuple.get()) == 1 && uses == 1) in_front_.emplace(folded.get(), *step);
    }
    return normalised_[item.tuple.get()] = folded;
  }

  // A normalisation in front of (N, C, ...) that becomes (N, C * ...), for a product: each channel's numbers as often as it has elements.
  Status LookThroughFlattening(const Expr& expr) {
    const Call* call = IsCallOf(expr, "reshape") || IsCallOf(expr, "nn.batch_flatten") ? expr->As<Call>() : nullptr;
    const auto found = call ? in_front_.find(call->args[0].get()) : in_front_.end();
    if (found == in_front_.end()) return {};
    const Affine& step = found->second;
    const Shape& from = step.data->type().AsTensor()->shape;
    const Shape& to = expr->type().AsTensor()->shape;
    if (step.axis != 1 || to.size() != 2 || to[0] != from[0] || to[1] == 0) return {};
    Affine flat{COLLAGE_TRY(MakeCall(call->callee, {step.data}, call->attributes, expr->origin())), 1, {}, {}, step.origin};
    const auto elements = static_cast<size_t>(to[1] / from[1]);
    for (size_t c = 0; c < step.scale.size(); ++c) {
      flat.scale.insert(flat.scale.end(), elements, step.scale[c]);
      flat.shift.insert(flat.shift.end(), elements, step.shift[c]);
    }
    made_.push_back(expr);
    in_front_.emplace(expr.get(), std::move(flat));
    return {};
  }

  // A normalisation that only `expr` reads, in the weights of `expr`. Null when there is none, or when it must stay.
  Result<Expr> FoldIntoConsumer(const Expr& expr) {
    const Call* call = expr->As<Call>();
    const auto found = call && !call->args.empty() ? in_front_.find(call->args[0].get()) : in_front_.end();
    if (found == in_front_.end()) return Expr();
    const Affine& step = found->second;
    const std::optional<AffineInWeight> folded =
        COLLAGE_TRY(WithAffineInput(expr, step.data, step.axis, step.scale, step.shift, step.origin));
    if (!folded) return Expr();
    const Affine shift{folded->call, folded->axis, {1}, folded->shift, Origin::Union({expr->origin(), step.origin}), false};
    return IsFinite(shift) ? WithBias(folded->call, shift) : Expr();
  }

  // Null when there is nothing to fold into.
  Result<Expr> FoldIntoProducer(const Affine& step) {
    Affine total = step;
    bool has_bias = false;
    if (const std::optional<Affine> bias = ReadAffine(step.data);
        bias && !bias->scales && bias->axis == step.axis && IsUsedOnce(step.data)) {
      total.shift.resize(std::max(total.shift.size(), bias->shift.size()), total.shift.front());
      for (size_t c = 0; c < total.shift.size(); ++c) total.shift[c] += OfChannel(bias->shift, c) * OfChannel(total.scale, c);
      total.data = bias->data;
      total.origin = Origin::Union({bias->origin, total.origin});
      has_bias = true;
    }
    const bool alone = !step.scales && !has_bias && !scaled_.contains(total.data.get());
    if (alone || !IsUsedOnce(total.data)) return Expr();
    const Expr scaled = COLLAGE_TRY(ScaledWeight(total.data, total.axis, total.scale, total.origin));
    return scaled ? WithBias(scaled, total) : Expr();
  }

  Result<Expr> WithBias(const Expr& data, const Affine& affine) {
    made_.push_back(data);
    if (std::all_of(affine.shift.begin(), affine.shift.end(), [](double value) { return value == 0; })) {
      scaled_.insert(data.get());
      return data;
    }
    const TensorType& result = *data->type().AsTensor();
    // Where the weight is no constant, nothing says that there is room for a number a channel.
    if (affine.shift.size() == 1 && !AsConstant(data->As<Call>()->args[1])) {
      const Expr shift = MakeFloatConstant(TensorType{{}, result.dtype}, affine.shift);
      return MakeCall(Operators().Find("add"), {data, shift}, {}, affine.origin);
    }
    const TensorType type{{result.shape[affine.axis]}, result.dtype};
    std::vector<double> bias = affine.shift;
    bias.resize(static_cast<size_t>(type.shape[0]), bias.front());
    const Attributes attributes = {{"axis", static_cast<int64_t>(affine.axis)}};
    return MakeCall(Operators().Find("nn.bias_add"), {data, MakeFloatConstant(type, bias)}, attributes, affine.origin);
  }

  Result<Expr> MultiplyAndAdd(const Affine& affine) {
    const TensorType& data = *affine.data->type().AsTensor();
    TensorType type{Shape(data.shape.size() - affine.axis, 1), data.dtype};
    type.shape[0] = data.shape[affine.axis];
    const Expr product =
        COLLAGE_TRY(MakeCall(Operators().Find("multiply"), {affine.data, MakeFloatConstant(type, affine.scale)}, {}, affine.origin));
    made_.push_back(product);
    return MakeCall(Operators().Find("add"), {product, MakeFloatConstant(type, affine.shift)}, {}, affine.origin);
  }

  const Expr& function_;
  std::unordered_map<const ExprNode*, size_t> uses_;
  std::unordered_map<const ExprNode*, size_t> projections_;  // of each tuple
  std::unordered_map<const ExprNode*, Expr> normalised_;     // of each nn.batch_norm that has been folded
  std::unordered_map<const ExprNode*, Affine> in_front_;     // what normalisations became that are read once, and of what
  std::unordered_set<const ExprNode*> scaled_;               // what a scale without a shift has been folded into
  std::vector<Expr> made_;                                   // keeps the keys of the maps alive
};

}  // namespace

Result<IRModule> FoldBatchNorm(const IRModule& module) {
  return RewriteFunctions(module, [](const Expr& function) { return BatchNormFolder(function).Run(); });
}

}  // namespace collage
