#include "collage/onnx/iteration.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "collage/ir/visit.h"
#include "collage/onnx/formula.h"

namespace collage::onnx_io {
namespace {

/// Iterations that are written one after another, and nodes in them: more make a plan that nobody wants to compile.
constexpr int64_t kMostUnrolledIterations = 4096;
constexpr size_t kMostUnrolledNodes = 50000;

bool IsConstant(const Expr& expr) { return ConstantValue(expr) != nullptr; }

bool Holds(const Expr& constant) { return *ConstantValue(constant)->Data<bool>(); }

Expr Index(int64_t value) { return MakeConstant(Tensor::Scalar(value, DType::kInt64)); }

class Reader {
 public:
  Reader(NodeReader& node, const Iteration& iteration) : node_(node), iteration_(iteration) {}

  Result<std::vector<Expr>> Read() {
    Result<std::vector<Expr>> recursive = Recursive();
    const bool may_unroll = !recursive || trips_.value_or(2) <= 1 || all_constant_;
    if (!may_unroll) return recursive;
    Result<std::vector<Expr>> unrolled = Unrolled();
    if (unrolled || recursive) return unrolled ? std::move(unrolled) : std::move(recursive);
    RequireEverything();
    // The body could not be read with the number of an iteration unknown. Where it cannot be read with it known, that says why.
    return body_failed_ ? std::move(unrolled) : std::move(recursive);
  }

 private:
  struct Step {
    Expr next_index;
    Expr condition;  ///< as the body gives it
    Expr go_on;      ///< and the bound holds
    std::vector<Expr> states;
    std::vector<Expr> slices;
    std::vector<Expr> captured;
  };

  /// What one iteration makes of the states.
  Result<Step> Iterate(const Expr& index, const std::vector<Expr>& states) {
    ReadBody body = COLLAGE_TRY(node_.bodies().Read(*iteration_.body, COLLAGE_TRY(iteration_.inputs(index, states))));
    const size_t first_state = iteration_.gives_condition ? 1 : 0;
    const size_t count = first_state + states.size() + iteration_.slices;
    if (body.outputs.size() != count) {
      return Fail("its body has " + std::to_string(body.outputs.size()) + " outputs where " + std::to_string(count) + " are right");
    }
    const auto state = body.outputs.begin() + static_cast<ptrdiff_t>(first_state);
    const auto slice = state + static_cast<ptrdiff_t>(states.size());
    Step step;
    step.states.assign(state, slice);
    step.slices.assign(slice, body.outputs.end());
    step.captured = std::move(body.captured);
    if (iteration_.length != nullptr) COLLAGE_TRY_STATUS(EndAtLength(index, states, step));
    step.condition = iteration_.gives_condition ? COLLAGE_TRY(AsScalar(node_, body.outputs[0], "its body's condition")) : Truth();
    step.next_index = COLLAGE_TRY(node_.Call("add", {index, Index(1)}));
    step.go_on = COLLAGE_TRY(And(COLLAGE_TRY(IsWithinBound(step.next_index)), step.condition));
    return step;
  }

  Status EndAtLength(const Expr& index, const std::vector<Expr>& before, Step& step) {
    COLLAGE_TRY_STATUS(CheckStates(before, step.states));
    const Expr lives = COLLAGE_TRY(node_.Call("less", {index, iteration_.length}));
    for (size_t i = 0; i < before.size(); ++i) step.states[i] = COLLAGE_TRY(node_.Call("where", {lives, step.states[i], before[i]}));
    for (Expr& slice : step.slices) {
      const Expr zero = COLLAGE_TRY(NodeReader::Scalar(0, COLLAGE_TRY(TensorTypeOf(slice)).dtype));
      slice = COLLAGE_TRY(node_.Call("where", {lives, slice, zero}));
    }
    return {};
  }

  static Expr Truth() { return MakeConstant(Tensor::Scalar(true, DType::kBool)); }

  Result<Expr> IsWithinBound(const Expr& index) {
    return iteration_.trip_count == nullptr ? Truth() : node_.Call("less", {index, iteration_.trip_count});
  }

  static Status CheckCondition(const Expr& condition) {
    const TensorType type = COLLAGE_TRY(TensorTypeOf(condition));
    if (type.dtype == DType::kBool && type.ElementCount() == 1) return {};
    return Fail("whether to go on is " + ToString(type) + ", expected one bool");
  }

  Result<Expr> And(const Expr& a, const Expr& b) {
    COLLAGE_TRY_STATUS(CheckCondition(a));
    COLLAGE_TRY_STATUS(CheckCondition(b));
    if (IsConstant(a)) return Holds(a) ? b : a;
    if (IsConstant(b)) return Holds(b) ? a : b;
    return node_.Call("logical_and", {a, b});
  }

  Result<Expr> FirstCondition() { return And(COLLAGE_TRY(IsWithinBound(Index(0))), iteration_.condition); }

  /// How often the body runs, where that is no matter of data.
  void CountTrips(const Expr& first, const Step& step) {
    const Tensor* bound = iteration_.trip_count == nullptr ? nullptr : ConstantValue(iteration_.trip_count);
    if (!IsConstant(first)) return;
    if (!Holds(first)) {
      trips_ = 0;
    } else if (IsConstant(step.condition) && !Holds(step.condition)) {
      trips_ = 1;
    } else if (IsConstant(step.condition) && bound != nullptr) {
      trips_ = *bound->Data<int64_t>();
    }
  }

  static Status CheckStates(const std::vector<Expr>& before, const std::vector<Expr>& after) {
    for (size_t i = 0; i < before.size(); ++i) {
      if (before[i]->type() == after[i]->type()) continue;
      return Fail("state " + std::to_string(i) + " is " + ToString(before[i]->type()) + " before an iteration and " +
                  ToString(after[i]->type()) + " after it; its type must not change, or the number of iterations must be a constant");
    }
    return {};
  }

  /// A tensor that holds all slices of an output, before any is there.
  Result<Expr> EmptyStack(const Expr& slice) {
    const TensorType element = COLLAGE_TRY(TensorTypeOf(slice));
    Shape shape = element.shape;
    shape.insert(shape.begin(), *trips_);
    COLLAGE_TRY_STATUS(CheckExtents(shape));
    const TensorType type{shape, element.dtype};
    COLLAGE_TRY_STATUS(node_.folder().Reserve(static_cast<double>(type.ByteCount())));
    return MakeConstant(Tensor(type));
  }

  Result<Expr> WithSlice(const Expr& stack, size_t number, const Expr& slice) {
    Formula formula(node_, DType::kInt64);
    const Expr place = iteration_.backward[number] ? formula.Call("subtract", Index(*trips_ - 1), index_) : index_;
    const std::vector<Expr> filled = COLLAGE_TRY(formula.Done(formula.Apply("scatter_nd", {stack, formula.Reshape(place, {1}), slice})));
    return filled[0];
  }

  Result<std::vector<Expr>> Recursive() {
    index_ = MakeVar("index", TensorType{{}, DType::kInt64});
    go_on_ = MakeVar("go_on", TensorType{{}, DType::kBool});
    std::vector<Expr> parameters{index_, go_on_};
    std::vector<Expr> states;
    for (const Expr& state : iteration_.states) {
      states.push_back(MakeVar("state" + std::to_string(states.size()), state->type()));
      parameters.push_back(states.back());
    }
    const Expr first = COLLAGE_TRY(FirstCondition());
    Step step = COLLAGE_TRY(Iterate(index_, states));
    NoteConstants(step);
    CountTrips(first, step);
    COLLAGE_TRY_STATUS(CheckStates(states, step.states));
    if (iteration_.slices > 0 && !trips_) {
      return Fail("scan output " + std::to_string(iteration_.states.size()) +
                  " has an extent that depends on the trip count, which is not a constant");
    }
    if (trips_ == 0) return Nothing(step);
    std::vector<Expr> arguments{Index(0), first};
    arguments.insert(arguments.end(), iteration_.states.begin(), iteration_.states.end());
    std::vector<Expr> next{step.next_index, step.go_on};
    next.insert(next.end(), step.states.begin(), step.states.end());
    for (size_t i = 0; i < step.slices.size(); ++i) {
      arguments.push_back(COLLAGE_TRY(EmptyStack(step.slices[i])));
      parameters.push_back(MakeVar("stack" + std::to_string(i), arguments.back()->type()));
      next.push_back(COLLAGE_TRY(WithSlice(parameters.back(), i, step.slices[i])));
    }
    return MakeRecursion(parameters, std::move(next), std::move(arguments), step.captured);
  }

  /// The loop as a function of what it reads from outside, and its call.
  Result<std::vector<Expr>> MakeRecursion(std::vector<Expr> parameters, std::vector<Expr> next, std::vector<Expr> arguments,
                                          std::vector<Expr> captured) {
    captured.insert(captured.end(), iteration_.sequences.begin(), iteration_.sequences.end());
    if (iteration_.trip_count != nullptr) captured.push_back(iteration_.trip_count);
    if (iteration_.length != nullptr) captured.push_back(iteration_.length);
    const std::vector<Expr> results(parameters.begin() + 2, parameters.end());
    const size_t own = parameters.size();
    Expr step = COLLAGE_TRY(Lift(MakeTuple(std::move(next)), captured, parameters, arguments));
    std::vector<Expr> again = step->As<Tuple>()->fields;
    again.insert(again.end(), parameters.begin() + static_cast<ptrdiff_t>(own), parameters.end());
    FunctionType type;
    for (const Expr& parameter : parameters) type.parameters.push_back(parameter->type());
    const Expr result = results.size() == 1 ? results[0] : MakeTuple(results);
    type.result = std::make_shared<const Type>(result->type());
    const std::string name = node_.bodies().FreshName(iteration_.function_name);
    const Expr global = MakeGlobalVar(name, type);
    const Expr body = COLLAGE_TRY(MakeIf(go_on_, COLLAGE_TRY(MakeCall(global, std::move(again))), result));
    node_.bodies().AddFunction(name, COLLAGE_TRY(MakeFunction(parameters, body)));
    const Expr call = COLLAGE_TRY(MakeCall(global, std::move(arguments), {}, node_.origin()));
    std::vector<Expr> outputs;
    for (size_t i = 0; i < results.size(); ++i) outputs.push_back(results.size() == 1 ? call : COLLAGE_TRY(MakeTupleGetItem(call, i)));
    return outputs;
  }

  /// `body` with what it reads from outside as further parameters; the values of those are appended to `arguments`.
  static Result<Expr> Lift(const Expr& body, const std::vector<Expr>& captured, std::vector<Expr>& parameters,
                           std::vector<Expr>& arguments) {
    std::unordered_map<const ExprNode*, Expr> variables;
    std::unordered_map<const ExprNode*, Expr> outside;  // by variable
    const auto add = [&](const Expr& value) {
      const Expr variable = MakeVar("captured" + std::to_string(outside.size()), value->type());
      variables.emplace(value.get(), variable);
      outside.emplace(variable.get(), value);
    };
    for (const Expr& value : captured) {
      if (!IsConstant(value) && !variables.contains(value.get())) add(value);
    }
    std::unordered_set<const ExprNode*> bound;
    for (const Expr& parameter : parameters) bound.insert(parameter.get());
    Expr lifted = COLLAGE_TRY(Substitute(body, variables));
    // Rows that look into their arguments may have read what stands behind a captured value.
    const size_t before = outside.size();
    for (const Expr* expr : PostOrderList(lifted)) {
      if ((*expr)->As<Var>() && !bound.contains(expr->get()) && !outside.contains(expr->get())) add(*expr);
    }
    if (outside.size() > before) lifted = COLLAGE_TRY(Substitute(lifted, variables));
    for (const Expr* expr : PostOrderList(lifted)) {
      const auto value = outside.find(expr->get());
      if (value == outside.end()) continue;
      parameters.push_back(*expr);
      arguments.push_back(value->second);
    }
    return lifted;
  }

  void NoteConstants(const Step& step) {
    all_constant_ = true;
    for (const std::vector<Expr>* values : {&iteration_.states, &iteration_.sequences, &step.captured}) {
      for (const Expr& value : *values) all_constant_ = all_constant_ && IsConstant(value);
    }
    if (iteration_.trip_count != nullptr) all_constant_ = all_constant_ && IsConstant(iteration_.trip_count);
    if (iteration_.length != nullptr) all_constant_ = all_constant_ && IsConstant(iteration_.length);
    captured_ = step.captured;
  }

  /// What a loop gives whose body never runs.
  Result<std::vector<Expr>> Nothing(const Step& step) {
    std::vector<Expr> outputs = iteration_.states;
    for (const Expr& slice : step.slices) outputs.push_back(COLLAGE_TRY(EmptyStack(slice)));
    return outputs;
  }

  Result<std::vector<Expr>> Unrolled() {
    std::vector<Expr> states = iteration_.states;
    std::vector<std::vector<Expr>> slices(iteration_.slices);
    Expr go_on = COLLAGE_TRY(FirstCondition());
    const size_t nodes = iteration_.body->nodes.size() + 1;
    int64_t number = 0;
    for (; IsConstant(go_on) && Holds(go_on); ++number) {
      if (number == kMostUnrolledIterations || static_cast<size_t>(number) * nodes > kMostUnrolledNodes)
        return Fail("has more than " + std::to_string(number) + " iterations to be written one after another");
      Result<Step> read = Iterate(Index(number), states);
      body_failed_ = !read;
      Step step = COLLAGE_TRY(std::move(read));
      for (size_t i = 0; i < slices.size(); ++i) {
        slices[i].push_back(step.slices[i]);
        if (step.slices[i]->type() == slices[i][0]->type()) continue;
        return Fail("scan output " + std::to_string(states.size() + i) + " is stacked of " + ToString(slices[i][0]->type()) + " and " +
                    ToString(step.slices[i]->type()));
      }
      states = std::move(step.states);
      go_on = step.go_on;
    }
    if (!IsConstant(go_on)) return Fail("whether iteration " + std::to_string(number) + " takes place depends on data");
    if (number == 0 && !slices.empty()) return Fail("the types of its scan outputs are not known");
    for (size_t i = 0; i < slices.size(); ++i) {
      if (iteration_.backward[i]) std::reverse(slices[i].begin(), slices[i].end());
      states.push_back(COLLAGE_TRY(Stack(node_, std::move(slices[i]))));
    }
    return states;
  }

  void RequireEverything() {
    std::vector<Expr> values = captured_;
    values.insert(values.end(), iteration_.states.begin(), iteration_.states.end());
    values.push_back(iteration_.condition);
    if (iteration_.trip_count != nullptr) values.push_back(iteration_.trip_count);
    if (iteration_.length != nullptr) values.push_back(iteration_.length);
    node_.folder().RequireValue(MakeTuple(std::move(values)));
  }

  NodeReader& node_;
  const Iteration& iteration_;
  Expr index_;
  Expr go_on_;
  std::optional<int64_t> trips_;
  bool all_constant_ = false;
  bool body_failed_ = false;  ///< in an iteration of a known number
  std::vector<Expr> captured_;
};

}  // namespace

Result<Expr> Stack(NodeReader& node, std::vector<Expr> slices) {
  const TensorType element = COLLAGE_TRY(TensorTypeOf(slices[0]));
  Formula formula(node, element.dtype);
  Shape shape = element.shape;
  shape.insert(shape.begin(), 1);
  for (Expr& slice : slices) slice = formula.Reshape(slice, shape);
  const std::vector<Expr> stack = COLLAGE_TRY(formula.Done(formula.Concatenate(slices, 0)));
  return stack[0];
}

Result<Expr> AsScalar(NodeReader& node, const Expr& value, const std::string& meaning) {
  const TensorType type = COLLAGE_TRY(TensorTypeOf(value));
  if (type.ElementCount() == 1) return node.Reshape(value, {});
  return Fail(meaning + " is " + ToString(value->type()) + ", expected one element");
}

Result<std::vector<Expr>> ReadIteration(NodeReader& node, const Iteration& iteration) { return Reader(node, iteration).Read(); }

}  // namespace collage::onnx_io
