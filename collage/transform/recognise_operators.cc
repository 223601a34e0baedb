#include "collage/transform/recognise_operators.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "collage/ir/visit.h"
#include "collage/op/reduction.h"
#include "collage/op/rules.h"
#include "collage/op/table.h"
#include "collage/transform/constants.h"
#include "collage/transform/function_pass.h"

namespace collage {
namespace {

using Uses = std::unordered_map<const ExprNode*, size_t>;

/// What a pattern has taken: how often it reads each expression, and where they came from.
class Taken {
 public:
  explicit Taken(const Expr& root) : root_(root), origins_{root->origin()} {}

  /// The call, where it is one of that operator; `reads` of it are inside.
  const Call* Take(const Expr& expr, std::string_view op, size_t reads = 1) {
    if (!IsCallOf(expr, op)) return nullptr;
    reads_[expr.get()] += reads;
    origins_.push_back(expr->origin());
    return expr->As<Call>();
  }

  /// Whether nothing that was taken is read elsewhere.
  [[nodiscard]] bool IsWhole(const Uses& uses) const {
    return std::all_of(reads_.begin(), reads_.end(), [&](const auto& entry) {
      const auto at = uses.find(entry.first);
      return at != uses.end() && at->second == entry.second;
    });
  }

  [[nodiscard]] const Expr& root() const { return root_; }
  [[nodiscard]] Origin TotalOrigin() const { return Origin::Union(origins_); }

 private:
  Expr root_;
  std::vector<Origin> origins_;
  Uses reads_;
};

const Shape& ShapeOf(const Expr& expr) { return expr->type().AsTensor()->shape; }

std::optional<double> ScalarOf(const Expr& expr) {
  const std::optional<std::vector<double>> values = FloatValues(expr);
  return values && values->size() == 1 ? std::optional(values->front()) : std::nullopt;
}

/// The one axis over which a call reduces, keeping it with extent 1.
std::optional<size_t> ReducedAxis(const Call& call) {
  const TensorType& data = *call.args[0]->type().AsTensor();
  const Result<Reduction> reduction = ReadReduction(data, call.attributes);
  if (!reduction || reduction->result.size() != data.shape.size() || std::ranges::count(reduction->reduced, true) != 1) return std::nullopt;
  return std::ranges::find(reduction->reduced, true) - reduction->reduced.begin();
}

struct Reduced {
  Expr data;
  size_t axis;
};

std::optional<Reduced> TakeReduction(Taken& taken, const Expr& expr, std::string_view op, size_t reads = 1) {
  const Call* call = taken.Take(expr, op, reads);
  const std::optional<size_t> axis = call ? ReducedAxis(*call) : std::nullopt;
  return axis ? std::optional(Reduced{call->args[0], *axis}) : std::nullopt;
}

/// The operand beside a constant all of whose elements equal `value`.
Expr Beside(const Call& call, double value) {
  if (IsConstantOf(call.args[1], value)) return call.args[0];
  return IsConstantOf(call.args[0], value) ? call.args[1] : nullptr;
}

/// x of 1 / x.
Expr TakeReciprocal(Taken& taken, const Expr& expr, size_t reads = 1) {
  const Call* divide = IsCallOf(expr, "divide") ? expr->As<Call>() : nullptr;
  const Expr divisor = divide && IsConstantOf(divide->args[0], 1) ? divide->args[1] : nullptr;
  if (divisor) taken.Take(expr, "divide", reads);
  return divisor;
}

/// x of 1 / sqrt(x), in the forms in which it is written.
Expr TakeInverseRoot(Taken& taken, const Expr& expr, size_t reads) {
  if (const Call* root = taken.Take(expr, "rsqrt", reads)) return root->args[0];
  if (IsCallOf(expr, "power") && IsConstantOf(expr->As<Call>()->args[1], -0.5)) return taken.Take(expr, "power", reads)->args[0];
  const Expr divisor = TakeReciprocal(taken, expr, reads);
  const Call* root = divisor ? taken.Take(divisor, "sqrt") : nullptr;
  return root ? root->args[0] : nullptr;
}

/// What mean((x - mean(x))^2) + epsilon is made of.
struct Variance {
  Expr data;
  Expr mean;
  Expr deviation;
  size_t axis = 0;
  double epsilon = 0;
};

/// `deviation_reads`, `mean_reads`: how often what is matched reads them elsewhere.
std::optional<Variance> TakeVariance(Taken& taken, const Expr& shifted, size_t deviation_reads, size_t mean_reads) {
  const Call* add = taken.Take(shifted, "add");
  if (!add) return std::nullopt;
  const size_t constant = ScalarOf(add->args[1]) ? 1 : 0;
  const std::optional<double> epsilon = ScalarOf(add->args[constant]);
  const std::optional<Reduced> squares = epsilon ? TakeReduction(taken, add->args[1 - constant], "mean") : std::nullopt;
  const Call* square = squares ? taken.Take(squares->data, "multiply") : nullptr;
  if (!square || square->args[0] != square->args[1]) return std::nullopt;
  const Call* subtract = taken.Take(square->args[0], "subtract", 2 + deviation_reads);
  const std::optional<Reduced> mean = subtract ? TakeReduction(taken, subtract->args[1], "mean", 1 + mean_reads) : std::nullopt;
  if (!mean || mean->data != subtract->args[0] || mean->axis != squares->axis || !(*epsilon >= 0)) return std::nullopt;
  return Variance{mean->data, subtract->args[1], square->args[0], mean->axis, *epsilon};
}

/// (x - mean) / sqrt(variance + epsilon), or times its reciprocal.
std::optional<Variance> TakeQuotient(Taken& taken) {
  const Expr& root = taken.root();
  const Call& call = *root->As<Call>();
  const bool divides = IsCallOf(root, "divide");
  if (!divides && !IsCallOf(root, "multiply")) return std::nullopt;
  const size_t numerator = IsCallOf(call.args[0], "subtract") ? 0 : 1;
  if (divides && numerator != 0) return std::nullopt;
  const Expr& factor = call.args[1 - numerator];
  Expr shifted;
  if (!divides) {
    shifted = TakeInverseRoot(taken, factor, 1);
  } else if (const Call* square_root = taken.Take(factor, "sqrt")) {
    shifted = square_root->args[0];
  }
  const std::optional<Variance> found = shifted ? TakeVariance(taken, shifted, 1, 0) : std::nullopt;
  return found && found->deviation == call.args[numerator] ? found : std::nullopt;
}

/// Summands of sums, differences and negations, with their signs; more than three are none of ours.
struct Summand {
  Expr value;
  bool is_negative = false;
};

std::vector<Summand> TakeSummands(Taken& taken) {
  constexpr size_t kMost = 3;  // data, mean and shift
  std::vector<Summand> found;
  std::vector<Summand> open = {{taken.root()}};
  while (!open.empty() && found.size() + open.size() <= kMost) {
    const auto [expr, is_negative] = open.back();
    open.pop_back();
    const bool is_root = expr == taken.root();
    const bool subtracts = IsCallOf(expr, "subtract");
    if (subtracts || IsCallOf(expr, "add")) {
      if (!is_root) taken.Take(expr, subtracts ? "subtract" : "add");
      const Call& call = *expr->As<Call>();
      open.push_back({call.args[1], is_negative != subtracts});
      open.push_back({call.args[0], is_negative});
    } else if (IsCallOf(expr, "negative")) {
      open.push_back({taken.Take(expr, "negative")->args[0], !is_negative});
    } else {
      found.push_back({expr, is_negative});
    }
  }
  return open.empty() ? found : std::vector<Summand>();
}

/// Constants that stand at a layer normalisation, or null.
struct Vectors {
  Expr scale;
  Expr shift;
};

/// The factor 1 / sqrt(variance + epsilon), times a constant scale or not, that is read twice.
Expr TakeFactor(Taken& taken, const Expr& factor, Vectors& vectors) {
  if (!IsCallOf(factor, "multiply")) return TakeInverseRoot(taken, factor, 2);
  const Call& call = *taken.Take(factor, "multiply", 2);
  const size_t constant = AsConstant(call.args[0]) ? 0 : 1;
  vectors.scale = call.args[constant];
  return AsConstant(vectors.scale) ? TakeInverseRoot(taken, call.args[1 - constant], 1) : nullptr;
}

/// What two products have in common, and what is left of each.
struct Factored {
  Expr common;
  std::array<Expr, 2> others;
};

std::optional<Factored> CommonFactor(const Call& first, const Call& second) {
  for (const size_t i : {0, 1}) {
    for (const size_t j : {0, 1}) {
      if (first.args[i] == second.args[j]) return Factored{first.args[i], {first.args[1 - i], second.args[1 - j]}};
    }
  }
  return std::nullopt;
}

/// x * factor - mean * factor + shift, in any order.
std::optional<Variance> TakeWithOneFactor(Taken& taken, Vectors& vectors) {
  if (!IsCallOf(taken.root(), "add") && !IsCallOf(taken.root(), "subtract")) return std::nullopt;
  std::vector<Summand> products;
  for (const Summand& summand : TakeSummands(taken)) {
    if (AsConstant(summand.value) && !vectors.shift && !summand.is_negative) {
      vectors.shift = summand.value;
    } else if (taken.Take(summand.value, "multiply")) {
      products.push_back(summand);
    } else {
      return std::nullopt;
    }
  }
  if (products.size() != 2) return std::nullopt;
  if (products[0].is_negative) std::swap(products[0], products[1]);
  std::optional<Factored> factored = CommonFactor(*products[0].value->As<Call>(), *products[1].value->As<Call>());
  if (!factored) return std::nullopt;
  std::array<bool, 2> negative = {products[0].is_negative, products[1].is_negative};
  for (const size_t i : {0, 1}) {
    const Call* negation = taken.Take(factored->others[i], "negative");
    if (!negation) continue;
    factored->others[i] = negation->args[0];
    negative[i] = !negative[i];
  }
  if (negative[0] == negative[1]) return std::nullopt;
  const size_t data = negative[0] ? 1 : 0;
  const Expr shifted = TakeFactor(taken, factored->common, vectors);
  const std::optional<Variance> found = shifted ? TakeVariance(taken, shifted, 0, 1) : std::nullopt;
  const bool fits = found && found->data == factored->others[data] && found->mean == factored->others[1 - data];
  return fits ? found : std::nullopt;
}

/// The values of a constant as a vector along an axis of `data`, or null.
Expr VectorOf(const Expr& constant, const Expr& data, size_t axis) {
  std::optional<std::vector<double>> values = PerChannelValues(constant, ShapeOf(data), axis);
  if (!values) return nullptr;
  const TensorType type{{ShapeOf(data)[axis]}, data->type().AsTensor()->dtype};
  if (values->size() == 1) values->assign(static_cast<size_t>(type.shape[0]), values->front());
  return MakeFloatConstant(type, *values);
}

Result<Expr> MakeLayerNorm(const Variance& of, const Vectors& vectors, const Origin& origin) {
  const TensorType type{{ShapeOf(of.data)[of.axis]}, of.data->type().AsTensor()->dtype};
  const auto filled = [&](double value) { return MakeFloatConstant(type, std::vector<double>(static_cast<size_t>(type.shape[0]), value)); };
  const Expr scale = vectors.scale ? VectorOf(vectors.scale, of.data, of.axis) : filled(1);
  const Expr shift = vectors.shift ? VectorOf(vectors.shift, of.data, of.axis) : filled(0);
  if (!scale || !shift) return Expr();
  Attributes attributes = {{"axis", static_cast<int64_t>(of.axis)}, {"epsilon", of.epsilon}};
  if (!vectors.scale) attributes.Set("scale", false);
  if (!vectors.shift) attributes.Set("center", false);
  return MakeCall(Operators().Find("nn.layer_norm"), {of.data, scale, shift}, attributes, origin);
}

/// nn.layer_norm without a shift, times or plus a constant vector along its axis.
Result<Expr> AbsorbVector(const Expr& root, const Uses& uses) {
  const bool scales = IsCallOf(root, "multiply");
  if (!scales && !IsCallOf(root, "add")) return Expr();
  const Call& call = *root->As<Call>();
  const size_t place = AsConstant(call.args[0]) ? 0 : 1;
  Taken taken(root);
  const Call* norm = taken.Take(call.args[1 - place], "nn.layer_norm");
  if (!norm || !taken.IsWhole(uses)) return Expr();
  const std::string flag = scales ? "scale" : "center";
  if (norm->attributes.Bool("center", true).value_or(true) || norm->attributes.Bool(flag, true).value_or(true)) return Expr();
  std::vector<Expr> args = norm->args;
  const size_t axis = AxisAttribute(norm->attributes, "axis", -1, ShapeOf(args[0]).size());
  const Expr vector = VectorOf(call.args[place], args[0], axis);
  if (!vector) return Expr();
  args[scales ? 1 : 2] = vector;
  Attributes attributes = norm->attributes;
  attributes.Erase(flag);
  return MakeCall(norm->callee, args, attributes, taken.TotalOrigin());
}

Result<Expr> RecogniseLayerNorm(const Expr& root, const Uses& uses) {
  Taken taken(root);
  if (const std::optional<Variance> found = TakeQuotient(taken); found && taken.IsWhole(uses))
    return MakeLayerNorm(*found, {}, taken.TotalOrigin());
  Taken again(root);
  Vectors vectors;
  if (const std::optional<Variance> found = TakeWithOneFactor(again, vectors); found && again.IsWhole(uses))
    return MakeLayerNorm(*found, vectors, again.TotalOrigin());
  return AbsorbVector(root, uses);
}

/// x of x - max(x, axis), where `expr` is read so often inside; `expr` itself where it is anything else.
Expr WithoutLargest(Taken& taken, const Expr& expr, size_t axis, size_t reads, const Uses& uses) {
  Taken inside(expr);
  const Call* subtract = inside.Take(expr, "subtract", reads);
  const std::optional<Reduced> largest = subtract ? TakeReduction(inside, subtract->args[1], "max") : std::nullopt;
  if (!largest || largest->axis != axis || largest->data != subtract->args[0] || !inside.IsWhole(uses)) return expr;
  taken.Take(expr, "subtract", reads);
  taken.Take(subtract->args[1], "max");
  return largest->data;
}

Result<Expr> MakeSoftmax(const std::string& name, const Expr& data, size_t axis, const Taken& taken) {
  return MakeCall(Operators().Find(name), {data}, {{"axis", static_cast<int64_t>(axis)}}, taken.TotalOrigin());
}

/// exp(x) / sum(exp(x)), or times the reciprocal of the sum.
Result<Expr> RecogniseSoftmax(const Expr& root, const Uses& uses) {
  const bool divides = IsCallOf(root, "divide");
  if (!divides && !IsCallOf(root, "multiply")) return Expr();
  const Call& call = *root->As<Call>();
  Taken taken(root);
  const size_t numerator = IsCallOf(call.args[0], "exp") ? 0 : 1;
  if (divides && numerator != 0) return Expr();
  const Expr& denominator = call.args[1 - numerator];
  const Expr total = divides ? denominator : TakeReciprocal(taken, denominator);
  const std::optional<Reduced> sum = total ? TakeReduction(taken, total, "sum") : std::nullopt;
  const Call* exponential = sum && sum->data == call.args[numerator] ? taken.Take(sum->data, "exp", 2) : nullptr;
  if (!exponential || !taken.IsWhole(uses)) return Expr();
  return MakeSoftmax("nn.softmax", WithoutLargest(taken, exponential->args[0], sum->axis, 1, uses), sum->axis, taken);
}

/// log(softmax(x)), or x - log(sum(exp(x))).
Result<Expr> RecogniseLogSoftmax(const Expr& root, const Uses& uses) {
  Taken taken(root);
  if (IsCallOf(root, "log")) {
    const Call* softmax = taken.Take(root->As<Call>()->args[0], "nn.softmax");
    if (!softmax || !taken.IsWhole(uses)) return Expr();
    return MakeCall(Operators().Find("nn.log_softmax"), {softmax->args[0]}, softmax->attributes, taken.TotalOrigin());
  }
  if (!IsCallOf(root, "subtract")) return Expr();
  const Call& call = *root->As<Call>();
  const Call* logarithm = taken.Take(call.args[1], "log");
  const std::optional<Reduced> sum = logarithm ? TakeReduction(taken, logarithm->args[0], "sum") : std::nullopt;
  const Call* exponential = sum ? taken.Take(sum->data, "exp") : nullptr;
  if (!exponential || exponential->args[0] != call.args[0] || !taken.IsWhole(uses)) return Expr();
  return MakeSoftmax("nn.log_softmax", WithoutLargest(taken, call.args[0], sum->axis, 2, uses), sum->axis, taken);
}

/// 1 / (1 + exp(-x)).
Result<Expr> RecogniseSigmoid(const Expr& root, const Uses& uses) {
  if (!IsCallOf(root, "divide") || !IsConstantOf(root->As<Call>()->args[0], 1)) return Expr();
  Taken taken(root);
  const Call* add = taken.Take(root->As<Call>()->args[1], "add");
  const Expr summand = add ? Beside(*add, 1) : nullptr;
  const Call* exponential = summand ? taken.Take(summand, "exp") : nullptr;
  if (!exponential || !(exponential->args[0]->type() == root->type())) return Expr();
  const Expr& negated = exponential->args[0];
  const Call* negative = taken.Take(negated, "negative");
  const Call* product = negative ? nullptr : taken.Take(negated, "multiply");
  const Expr data = negative ? negative->args[0] : product ? Beside(*product, -1) : nullptr;
  if (!data || !(data->type() == root->type()) || !taken.IsWhole(uses)) return Expr();
  return MakeCall(Operators().Find("sigmoid"), {data}, {}, taken.TotalOrigin());
}

/// What replaces a call, or null.
Result<Expr> Recognise(const Expr& expr, const Uses& uses) {
  if (!CalledOp(expr)) return Expr();
  const TensorType* type = expr->type().AsTensor();
  if (!type || (type->dtype != DType::kFloat32 && type->dtype != DType::kFloat64) || ElementCount(type->shape) == 0) return Expr();
  for (const auto rule : {RecogniseLayerNorm, RecogniseSoftmax, RecogniseLogSoftmax, RecogniseSigmoid}) {
    Expr whole = COLLAGE_TRY(rule(expr, uses));
    // Constants of one element may add dimensions.
    if (whole && whole->type() == expr->type()) return whole;
  }
  return Expr();
}

Result<Expr> RecogniseIn(const Expr& function) {
  Uses uses = CountUses(function);
  const auto recognise = [&](const Expr& original, const Expr& expr) -> Result<Expr> {
    const size_t count = uses.at(original.get());
    const Expr whole = COLLAGE_TRY(Recognise(expr, uses));
    const Expr& result = whole ? whole : expr;
    // What was made anew is read as often as what it stands for.
    if (result != original) uses[result.get()] = count;
    return result;
  };
  return Rewrite(function, recognise, MayEnter);
}

}  // namespace

Result<IRModule> RecogniseOperators(const IRModule& module) { return RewriteFunctions(module, RecogniseIn); }

}  // namespace collage
