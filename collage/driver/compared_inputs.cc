#include "collage/driver/compared_inputs.h"

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "collage/ir/visit.h"

namespace collage {
namespace {

const Expr& BehindViews(const Expr& expr) {
  const Expr* source = &expr;
  for (const OpDef* op = CalledOp(*source); op && (op->is_view || op->is_identity); op = CalledOp(*source))
    source = &(*source)->As<Call>()->args[0];
  return *source;
}

/// Follows the tensors of the main function into the functions that are given them, each of which is read once.
class Finder {
 public:
  explicit Finder(const IRModule& outlined) : outlined_(outlined) {}

  std::vector<std::vector<Tensor>> Find() {
    Numbers numbers;
    size_t tensors = 0;
    for (const Expr& parameter : outlined_.Main().parameters) {
      const TensorType* type = parameter->type().AsTensor();
      if (type && type->ElementCount() == 1) numbers.emplace(parameter.get(), tensors);
      tensors += FlattenTensors(parameter->type()).size();
    }
    found_.resize(tensors);
    pending_.emplace_back(outlined_.MainExpr(), std::move(numbers));
    while (!pending_.empty()) {
      const auto [function, of_function] = std::move(pending_.back());
      pending_.pop_back();
      PostOrder(function->As<Function>()->body, [&, &known = of_function](const Expr& expr) {
        if (expr->As<Call>()) Take(*expr->As<Call>(), known);
      });
    }
    return std::move(found_);
  }

 private:
  using Numbers = std::unordered_map<const ExprNode*, size_t>;  // of tensors, by the parameters that hold them

  void Take(const Call& call, const Numbers& numbers) {
    const Op* op = call.callee->As<Op>();
    if (op && op->def->name == "equal") {
      Compare(call.args[0], call.args[1], numbers);
      Compare(call.args[1], call.args[0], numbers);
    }
    const GlobalVar* global = call.callee->As<GlobalVar>();
    const Expr callee = global ? outlined_.Find(global->name) : nullptr;
    if (!callee) return;
    Numbers inside;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const auto at = numbers.find(call.args[i].get());
      if (at != numbers.end()) inside.emplace(callee->As<Function>()->parameters[i].get(), at->second);
    }
    if (!inside.empty() && seen_.insert(global->name).second) pending_.emplace_back(callee, std::move(inside));
  }

  void Compare(const Expr& one, const Expr& other, const Numbers& numbers) {
    const Expr& tensor = BehindViews(one);
    const auto at = numbers.find(tensor.get());
    const Constant* number = BehindViews(other)->As<Constant>();
    if (at != numbers.end() && number && number->value.ElementCount() == 1)
      found_[at->second].push_back(number->value.Reshaped(tensor->type().AsTensor()->shape));
  }

  const IRModule& outlined_;
  std::vector<std::pair<Expr, Numbers>> pending_;
  std::unordered_set<std::string> seen_;
  std::vector<std::vector<Tensor>> found_;
};

}  // namespace

std::vector<std::vector<Tensor>> ComparedWith(const IRModule& outlined) { return Finder(outlined).Find(); }

}  // namespace collage
