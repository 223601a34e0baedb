#include "collage/ir/op_sequence.h"

#include <unordered_map>

#include "collage/support/check.h"

namespace collage {
namespace {

// Inlining gives one expression different values at each call of its function, so results are kept per frame (one call of a
// function literal). An explicit stack of work items replaces recursion: chains of 100 000 operators must not overflow.
class Builder {
 public:
  Result<OpSequence> Build(const Function& function) {
    frames_.push_back({});
    for (const Expr& parameter : function.parameters) {
      std::vector<size_t> tensors;
      for (TensorType& type : FlattenTensors(parameter->type())) tensors.push_back(AddValue(std::move(type)));
      if (tensors.size() != ValueCount(parameter->type())) return Fail("not straight-line: a parameter is, or holds, a function");
      sequence_.parameters.insert(sequence_.parameters.end(), tensors.begin(), tensors.end());
      frames_[0][parameter.get()] = std::move(tensors);
    }
    stack_.push_back({function.body, 0, false, 0});
    while (!stack_.empty()) COLLAGE_TRY_STATUS(Advance());
    sequence_.results = frames_[0].at(function.body.get());
    return std::move(sequence_);
  }

 private:
  using Frame = std::unordered_map<const ExprNode*, std::vector<size_t>>;
  struct Item {
    Expr expr;
    size_t frame;
    bool children_done;
    size_t callee_frame;  // of a call of a function literal, once its body has been entered
  };

  size_t AddValue(TensorType type) {
    sequence_.values.push_back({std::move(type), std::nullopt});
    return sequence_.values.size() - 1;
  }

  const std::vector<size_t>& At(size_t frame, const Expr& expr) const { return frames_[frame].at(expr.get()); }

  void Finish(size_t frame, const Expr& expr, std::vector<size_t> tensors) {
    frames_[frame][expr.get()] = std::move(tensors);
    stack_.pop_back();
  }

  void Visit(const Expr& expr, size_t frame) {
    if (!frames_[frame].contains(expr.get())) stack_.push_back({expr, frame, false, 0});
  }

  Status Advance() {
    const Item item = stack_.back();
    if (frames_[item.frame].contains(item.expr.get())) {
      stack_.pop_back();
      return {};
    }
    if (!item.children_done) {
      stack_.back().children_done = true;
      return Enter(item);
    }
    return Leave(item);
  }

  Status Enter(const Item& item) {
    if (const Let* let = item.expr->As<Let>()) {
      Visit(let->value, item.frame);
      return {};
    }
    if (const Call* call = item.expr->As<Call>()) {
      if (!call->callee->As<Op>() && !call->callee->As<Function>())
        return Fail("not straight-line: a call of something that is no operator or function literal");
      for (size_t i = call->args.size(); i-- > 0;) Visit(call->args[i], item.frame);
      return {};
    }
    if (const Tuple* tuple = item.expr->As<Tuple>()) {
      for (size_t i = tuple->fields.size(); i-- > 0;) Visit(tuple->fields[i], item.frame);
      return {};
    }
    if (const TupleGetItem* projection = item.expr->As<TupleGetItem>()) {
      Visit(projection->tuple, item.frame);
      return {};
    }
    if (const Var* var = item.expr->As<Var>()) return Fail("not straight-line: %" + var->name + " is not bound here");
    if (item.expr->As<Constant>()) return {};
    return Fail("not straight-line: if, or a function used as a value");
  }

  Status Leave(const Item& item) {
    const Expr& expr = item.expr;
    if (const Constant* constant = expr->As<Constant>()) {
      const size_t value = AddValue(constant->value.type());
      sequence_.values[value].constant = constant->value;
      Finish(item.frame, expr, {value});
      return {};
    }
    if (const Tuple* tuple = expr->As<Tuple>()) {
      std::vector<size_t> tensors;
      for (const Expr& field : tuple->fields) {
        const std::vector<size_t>& part = At(item.frame, field);
        tensors.insert(tensors.end(), part.begin(), part.end());
      }
      Finish(item.frame, expr, std::move(tensors));
      return {};
    }
    if (const TupleGetItem* projection = expr->As<TupleGetItem>()) {
      const TupleType& tuple = *projection->tuple->type().AsTuple();
      const std::vector<size_t>& all = At(item.frame, projection->tuple);
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(FirstValue(tuple, projection->index));
      Finish(item.frame, expr, std::vector<size_t>(first, first + static_cast<std::ptrdiff_t>(ValueCount(expr->type()))));
      return {};
    }
    if (const Let* let = expr->As<Let>()) return LeaveLet(item, *let);
    const Call* call = expr->As<Call>();
    COLLAGE_CHECK(call != nullptr);
    if (const Op* op = call->callee->As<Op>()) {
      AddStep(item, *call, op->def);
      return {};
    }
    return LeaveFunctionCall(item, *call, *call->callee->As<Function>());
  }

  Status LeaveLet(const Item& item, const Let& let) {
    if (!frames_[item.frame].contains(let.body.get())) {
      frames_[item.frame][let.variable.get()] = At(item.frame, let.value);
      Visit(let.body, item.frame);
      return {};
    }
    Finish(item.frame, item.expr, std::vector<size_t>(At(item.frame, let.body)));
    return {};
  }

  Status LeaveFunctionCall(const Item& item, const Call& call, const Function& callee) {
    if (item.callee_frame != 0) {
      Finish(item.frame, item.expr, std::vector<size_t>(At(item.callee_frame, callee.body)));
      return {};
    }
    const size_t frame = frames_.size();
    frames_.emplace_back();
    for (size_t i = 0; i < call.args.size(); ++i) frames_[frame][callee.parameters[i].get()] = At(item.frame, call.args[i]);
    stack_.back().callee_frame = frame;
    Visit(callee.body, frame);
    return {};
  }

  void AddStep(const Item& item, const Call& call, const OpDef* op) {
    OpSequence::Step step{op, call.attributes, {}, {}, {}, item.expr->type(), item.expr};
    for (const Expr& arg : call.args) {
      const std::vector<size_t>& tensors = At(item.frame, arg);
      step.inputs.insert(step.inputs.end(), tensors.begin(), tensors.end());
      step.argument_types.push_back(arg->type());
    }
    for (TensorType& type : FlattenTensors(item.expr->type())) step.outputs.push_back(AddValue(std::move(type)));
    std::vector<size_t> outputs = step.outputs;
    sequence_.steps.push_back(std::move(step));
    Finish(item.frame, item.expr, std::move(outputs));
  }

  OpSequence sequence_;
  std::vector<Frame> frames_;
  std::vector<Item> stack_;
};

}  // namespace

Result<OpSequence> ToOpSequence(const Function& function) { return Builder().Build(function); }

}  // namespace collage
