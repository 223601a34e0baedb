#include "collage/transform/fold_constants.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "collage/ir/call_origins.h"
#include "collage/ir/visit.h"
#include "collage/transform/constants.h"
#include "collage/transform/function_pass.h"

namespace collage {
namespace {

class Folder {
 public:
  Folder(const Expr& function, const FoldConstantsOptions& options) : function_(function), options_(options) {
    PostOrder(function, [&](const Expr& expr) {
      if (const Let* let = expr->As<Let>()) let_values_.emplace(let->variable.get(), let->value.get());
    });
    for (const auto& [variable, value] : let_values_) folded_values_.emplace(value, nullptr);
  }

  Result<Expr> Run() {
    const auto fold = [&](const Expr& original, const Expr& expr) -> Result<Expr> {
      Expr folded = COLLAGE_TRY(Fold(original, expr));
      const auto value = folded_values_.find(original.get());
      if (value != folded_values_.end()) value->second = folded;
      return folded;
    };
    return Rewrite(function_, fold, MayEnter);
  }

 private:
  Result<Expr> Fold(const Expr& original, const Expr& expr) {
    if (expr->As<Var>()) return FoldVariable(original, expr);
    if (const Call* call = expr->As<Call>()) return FoldCall(expr, *call);
    if (const TupleGetItem* item = expr->As<TupleGetItem>()) {
      const Tuple* tuple = item->tuple->As<Tuple>();
      return tuple ? tuple->fields[item->index] : expr;
    }
    if (const If* branch = expr->As<If>()) {
      if (const Tensor* condition = AsConstant(branch->condition))
        return *condition->Data<bool>() ? branch->then_branch : branch->else_branch;
    }
    return expr;
  }

  // The value of a let has been folded when its variable is visited (except inside a recursive function, which is no constant).
  Expr FoldVariable(const Expr& original, const Expr& expr) const {
    const auto let = let_values_.find(original.get());
    if (let == let_values_.end()) return expr;
    const Expr& value = folded_values_.at(let->second);
    return value && (value->As<Constant>() || value->As<Var>()) ? value : expr;
  }

  // The tensors of a constant argument, appended; false when it is none.
  static bool TakeConstants(const Expr& argument, std::vector<Tensor>& tensors) {
    if (const Tensor* tensor = AsConstant(argument)) {
      tensors.push_back(*tensor);
      return true;
    }
    const Tuple* tuple = argument->As<Tuple>();
    return tuple &&
           std::all_of(tuple->fields.begin(), tuple->fields.end(), [&](const Expr& field) { return TakeConstants(field, tensors); });
  }

  bool PaysOff(const std::vector<Tensor>& inputs, const std::vector<TensorType>& outputs) const {
    size_t before = 0;
    size_t after = 0;
    for (const Tensor& input : inputs) before += input.ByteCount();
    for (const TensorType& output : outputs) after += output.ByteCount();
    return after <= std::max(options_.small_bytes, 2 * before);
  }

  Result<Expr> FoldCall(const Expr& expr, const Call& call) const {
    const Op* op = call.callee->As<Op>();
    std::vector<Tensor> inputs;
    if (!op || !op->def->reference) return expr;
    for (const Expr& argument : call.args) {
      if (!TakeConstants(argument, inputs)) return expr;
    }
    const std::vector<TensorType> types = FlattenTensors(expr->type());
    if (!PaysOff(inputs, types)) return expr;
    std::vector<Tensor> outputs(types.begin(), types.end());
    op->def->reference(inputs, call.attributes, outputs);
    const Origin origin = OriginOfFolded(expr);
    if (expr->type().AsTensor()) return WithOrigin(MakeConstant(std::move(outputs[0])), origin);
    const TupleType* tuple = expr->type().AsTuple();
    const bool flat = tuple && std::all_of(tuple->fields.begin(), tuple->fields.end(), [](const Type& type) { return type.AsTensor(); });
    if (!flat) return expr;
    std::vector<Expr> fields;
    for (Tensor& output : outputs) fields.push_back(WithOrigin(MakeConstant(std::move(output)), origin));
    return MakeTuple(std::move(fields));
  }

  const Expr& function_;
  const FoldConstantsOptions& options_;
  std::unordered_map<const ExprNode*, const ExprNode*> let_values_;  // of each variable that let binds
  std::unordered_map<const ExprNode*, Expr> folded_values_;          // of those values; null until visited
};

}  // namespace

Result<IRModule> FoldConstants(const IRModule& module, const FoldConstantsOptions& options) {
  return RewriteFunctions(module, [&](const Expr& function) { return Folder(function, options).Run(); });
}

}  // namespace collage
