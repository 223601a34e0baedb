#include "collage/op/row_independence.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "collage/ir/visit.h"
#include "collage/op/einsum.h"
#include "collage/op/reduction.h"
#include "collage/op/rules.h"
#include "collage/op/slice.h"

namespace collage {
namespace {

/// A call with at least one argument that has rows; the others are whole.
struct RowCall {
  const Call& call;
  std::span<const RowUse> uses;
  const TensorType& result;  // the first tensor of it

  [[nodiscard]] bool HasRows(size_t argument) const { return uses[argument] == RowUse::kRows; }
  [[nodiscard]] const TensorType& Type(size_t argument) const { return *call.args[argument]->type().AsTensor(); }
  [[nodiscard]] size_t Rank(size_t argument) const { return Type(argument).shape.size(); }
  /// An axis attribute that counts dimensions of the first argument, or of the result where that has `more`.
  [[nodiscard]] size_t Axis(int64_t fallback, size_t more = 0) const {
    return AxisAttribute(call.attributes, "axis", fallback, Rank(0) + more);
  }
};

using Rule = bool (*)(const RowCall&);

/// The first argument has rows and no other has: what stands there is weights.
bool FirstAlone(const RowCall& call) {
  for (size_t i = 1; i < call.uses.size(); ++i) {
    if (call.HasRows(i)) return false;
  }
  return call.HasRows(0);
}

bool AllHaveRows(const RowCall& call) {
  return std::all_of(call.uses.begin(), call.uses.end(), [](RowUse use) { return use == RowUse::kRows; });
}

/// NumPy broadcasting: rows lie in the leading dimension of the result, and what is whole has no extent there.
bool Broadcasts(const RowCall& call) {
  const size_t rank = call.result.shape.size();
  for (size_t i = 0; i < call.uses.size(); ++i) {
    const bool reaches = call.Rank(i) == rank;
    if (call.HasRows(i) ? !reaches : reaches && call.Type(i).shape[0] != 1) return false;
  }
  return true;
}

template <int64_t kFallback>
bool AlongOtherAxis(const RowCall& call) {
  return FirstAlone(call) && call.Axis(kFallback) != 0;
}

bool Dense(const RowCall& call) { return FirstAlone(call) && call.Rank(0) >= 2; }

/// A product of matrices whose left rows, or whose leading batch, are the rows.
bool Matmul(const RowCall& call) {
  const size_t rank = call.result.shape.size();
  const auto is_batch = [&](size_t argument) { return call.Rank(argument) == rank && rank >= 3; };
  const auto reaches_batch = [&](size_t argument) { return is_batch(argument) && call.Type(argument).shape[0] != 1; };
  if (call.HasRows(0) && call.HasRows(1)) return is_batch(0) && is_batch(1);
  if (call.HasRows(1)) return is_batch(1) && !reaches_batch(0);
  if (is_batch(0)) return !reaches_batch(1);
  return call.Rank(0) == 2 && rank == 2 && call.Rank(1) == 2 && !BoolAttribute(call.call.attributes, "transpose_a", false);
}

bool BatchMatmul(const RowCall& call) { return AllHaveRows(call); }

bool Reduces(const RowCall& call) {
  const Result<Reduction> reduction = ReadReduction(call.Type(0), call.call.attributes);
  return reduction && !reduction->reduced.empty() && !reduction->reduced[0];
}

/// Elements stay in their order, so a leading extent that stays keeps each row's together.
bool View(const RowCall& call) { return FirstAlone(call); }

bool Transposes(const RowCall& call) {
  const Result<std::vector<size_t>> axes = ReadPermutation(call.Type(0), call.call.attributes);
  return axes && (*axes)[0] == 0;
}

/// Of a tuple, which has rows only where all of its fields have.
bool Joins(const RowCall& call, size_t more) {
  const Type& field = call.call.args[0]->type().AsTuple()->fields[0];
  return AxisAttribute(call.call.attributes, "axis", 0, field.AsTensor()->shape.size() + more) != 0;
}

bool Slices(const RowCall& call) {
  const Result<Slice> slice = ReadSlice(call.Type(0), call.call.attributes);
  return slice && slice->begin[0] == 0 && slice->stride[0] == 1;
}

bool Pads(const RowCall& call) {
  const auto widths = ReadPadWidth(call.Type(0), call.call.attributes);
  return FirstAlone(call) && widths && (*widths)[0] == std::array<int64_t, 2>{0, 0};
}

/// Rows of the data behind whose leading dimension is chosen, or rows of indices into something whole.
bool Takes(const RowCall& call) {
  const AttributeValue* axis = call.call.attributes.Find("axis");
  const bool is_flat = axis == nullptr || axis->IsNone();
  if (call.HasRows(0)) return !call.HasRows(1) && !is_flat && call.Axis(0) != 0;
  return is_flat || call.Axis(0) == 0;
}

bool Gathers(const RowCall& call) { return AllHaveRows(call) && call.Axis(0) != 0; }

bool OneHot(const RowCall& call) { return FirstAlone(call) && call.Axis(-1, 1) != 0; }

bool Matrices(const RowCall& call) { return call.Rank(0) >= 3; }

/// A scale for all, or one for each place of another dimension.
bool Quantises(const RowCall& call) {
  if (!FirstAlone(call)) return false;
  return call.Type(1).shape.empty() || call.Axis(-1) != 0;
}

/// Regions have rows; what they are cut out of is whole.
bool CutsRegions(const RowCall& call) {
  for (size_t i = 1; i < call.uses.size(); ++i) {
    if (!call.HasRows(i)) return false;
  }
  return !call.HasRows(0);
}

/// The loop that leads the result leads each operand with rows, and is in no other place.
bool Einsums(const RowCall& call) {
  const ::collage::Type& operands = call.call.args[0]->type();
  std::vector<TensorType> types;
  for (const ::collage::Type& field : operands.AsTuple()->fields) types.push_back(*field.AsTensor());
  const Result<Einsum> einsum = ReadEinsum(StringAttribute(call.call.attributes, "equation", ""), types);
  if (!einsum || einsum->result_rank == 0) return false;
  return std::all_of(einsum->terms.begin(), einsum->terms.end(), [](const std::vector<size_t>& term) {
    return !term.empty() && term[0] == 0 && std::count(term.begin(), term.end(), size_t{0}) == 1;
  });
}

/// By operator. Elementwise and broadcasting operators go by their kind, unless they are here.
const std::unordered_map<std::string_view, Rule>& Rules() {
  static const std::unordered_map<std::string_view, Rule> rules = {
      {"nn.conv2d", FirstAlone},
      {"nn.conv3d", FirstAlone},
      {"nn.conv2d_transpose", FirstAlone},
      {"nn.conv3d_transpose", FirstAlone},
      {"nn.max_pool2d", FirstAlone},
      {"nn.avg_pool2d", FirstAlone},
      {"nn.max_pool3d", FirstAlone},
      {"nn.avg_pool3d", FirstAlone},
      {"nn.global_max_pool2d", FirstAlone},
      {"nn.global_avg_pool2d", FirstAlone},
      {"nn.depth_to_space", FirstAlone},
      {"nn.space_to_depth", FirstAlone},
      {"nn.upsampling", FirstAlone},
      {"nn.col2im", FirstAlone},
      {"nn.dense", Dense},
      {"nn.matmul_nbits", Dense},
      {"nn.matmul", Matmul},
      {"nn.batch_matmul", BatchMatmul},
      {"nn.batch_norm", AlongOtherAxis<1>},
      {"nn.instance_norm", AlongOtherAxis<1>},
      {"nn.group_norm", AlongOtherAxis<1>},
      {"nn.lrn", AlongOtherAxis<1>},
      {"nn.layer_norm", AlongOtherAxis<-1>},
      {"nn.softmax", AlongOtherAxis<-1>},
      {"nn.log_softmax", AlongOtherAxis<-1>},
      {"nn.bias_add", AlongOtherAxis<1>},
      {"nn.prelu", AlongOtherAxis<1>},
      {"topk", AlongOtherAxis<-1>},
      {"cumsum", AlongOtherAxis<0>},
      {"cumprod", AlongOtherAxis<0>},
      {"split", AlongOtherAxis<0>},
      {"sum", Reduces},
      {"mean", Reduces},
      {"max", Reduces},
      {"min", Reduces},
      {"prod", Reduces},
      {"argmax", Reduces},
      {"argmin", Reduces},
      {"reshape", View},
      {"nn.batch_flatten", View},
      {"squeeze", View},
      {"expand_dims", View},
      {"transpose", Transposes},
      {"concatenate", [](const RowCall& call) { return Joins(call, 0); }},
      {"stack", [](const RowCall& call) { return Joins(call, 1); }},
      {"strided_slice", Slices},
      {"nn.pad", Pads},
      {"tile", [](const RowCall& call) { return call.Rank(0) == call.result.shape.size(); }},
      {"take", Takes},
      {"gather", Gathers},
      {"one_hot", OneHot},
      {"trilu", Matrices},
      {"linalg.det", Matrices},
      {"linalg.inv", Matrices},
      {"qnn.quantize", Quantises},
      {"qnn.dequantize", Quantises},
      {"image.grid_sample", AllHaveRows},
      {"vision.roi_align", CutsRegions},
      {"vision.roi_pool", CutsRegions},
      {"einsum", Einsums},
  };
  return rules;
}

bool LeadsWith(const Type& type, int64_t rows) {
  const TensorType* tensor = type.AsTensor();
  return tensor != nullptr && tensor->dtype != DType::kString && !tensor->shape.empty() && tensor->shape[0] == rows;
}

bool KeepsRows(const OpDef& op, const RowCall& call) {
  const auto rule = Rules().find(op.name);
  if (rule != Rules().end()) return rule->second(call);
  if (op.kind == OpKind::kElementwise) return call.uses.size() == 1 && call.Type(0).shape == call.result.shape;
  return op.kind == OpKind::kBroadcast && Broadcasts(call);
}

RowUse UseOfCall(const Call& call, const Type& type, std::span<const RowUse> arguments, int64_t rows) {
  const Op* op = call.callee->As<Op>();
  if (op == nullptr) return RowUse::kNeither;
  const Type& first = type.AsTuple() ? type.AsTuple()->fields[0] : type;
  if (!LeadsWith(first, rows)) return RowUse::kNeither;
  return KeepsRows(*op->def, {call, arguments, *first.AsTensor()}) ? RowUse::kRows : RowUse::kNeither;
}

}  // namespace

RowUse RowUseOf(const Expr& expr, std::span<const RowUse> arguments, int64_t rows) {
  const auto is = [](RowUse wanted) { return [wanted](RowUse use) { return use == wanted; }; };
  if (std::all_of(arguments.begin(), arguments.end(), is(RowUse::kWhole))) return RowUse::kWhole;
  if (std::any_of(arguments.begin(), arguments.end(), is(RowUse::kNeither))) return RowUse::kNeither;
  if (const Call* call = expr->As<Call>()) return UseOfCall(*call, expr->type(), arguments, rows);
  if (expr->As<Tuple>()) return std::all_of(arguments.begin(), arguments.end(), is(RowUse::kRows)) ? RowUse::kRows : RowUse::kNeither;
  return expr->As<TupleGetItem>() && LeadsWith(expr->type(), rows) ? RowUse::kRows : RowUse::kNeither;
}

RowUse RowUseOfResult(const Expr& function, std::span<const RowUse> parameters, int64_t rows) {
  const Function& whole = *function->As<Function>();
  std::unordered_map<const ExprNode*, RowUse> uses;
  for (size_t i = 0; i < parameters.size(); ++i) uses.emplace(whole.parameters[i].get(), parameters[i]);
  PostOrder(whole.body, [&](const Expr& expr) {
    if (uses.contains(expr.get()) || expr->As<Op>()) return;
    std::vector<RowUse> arguments;
    ForEachChild(*expr, [&](const Expr& child) {
      if (!child->As<Op>()) arguments.push_back(uses.at(child.get()));
    });
    uses.emplace(expr.get(), expr->As<Var>() ? RowUse::kNeither : RowUseOf(expr, arguments, rows));
  });
  return uses.at(whole.body.get());
}

}  // namespace collage
