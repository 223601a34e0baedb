#include "collage/backend/partition_program.h"

#include <algorithm>

#include "collage/backend/in_place.h"
#include "collage/dataflow/evaluation_order.h"
#include "collage/ir/call_origins.h"
#include "collage/ir/op_sequence.h"
#include "collage/op/axis_parts.h"
#include "collage/support/check.h"
#include "collage/support/name_supply.h"

namespace collage {
namespace {

bool IsPrimitive(const Function& function) {
  const AttributeValue* value = function.attributes.Find("Primitive");
  if (!value) return false;
  return (value->AsInt() && *value->AsInt() != 0) || (value->AsBool() && *value->AsBool());
}

/// `type`'s tensors as fresh variables appended to `parameters`, put together again as an expression of that type.
Expr Rebuild(const Type& type, std::vector<Expr>& parameters) {
  struct Open {
    const TupleType* tuple;
    std::vector<Expr> fields;
  };
  std::vector<Open> stack;
  const Type* next = &type;
  while (true) {
    Expr done;
    if (const TupleType* tuple = next->AsTuple()) {
      stack.push_back({tuple, {}});
    } else {
      done = MakeVar("p" + std::to_string(parameters.size()), *next);
      parameters.push_back(done);
    }
    while (!stack.empty()) {
      if (done) stack.back().fields.push_back(std::move(done));
      done = nullptr;
      if (stack.back().fields.size() < stack.back().tuple->fields.size()) break;
      done = MakeTuple(std::move(stack.back().fields));
      stack.pop_back();
    }
    if (stack.empty()) return done;
    next = &stack.back().tuple->fields[stack.back().fields.size()];
  }
}

/// A call of something bare as a Primitive function of tensors; constant arguments stay inside.
Result<Expr> WrapBareCall(const Expr& expr, Attributes attributes) {
  const Call& call = *expr->As<Call>();
  std::vector<Expr> parameters;
  std::vector<Expr> args;
  for (const Expr& arg : call.args) args.push_back(arg->As<Constant>() ? arg : Rebuild(arg->type(), parameters));
  Expr body = COLLAGE_TRY(MakeCall(call.callee, std::move(args), call.attributes, expr->origin()));
  return MakeFunction(std::move(parameters), std::move(body), std::move(attributes));
}

class Builder {
 public:
  Builder(const IRModule& module, const Expr& main, const PartitionProgramOptions& options)
      : module_(module), options_(options), graph_(main) {}

  Result<PartitionProgram> Build() {
    const Function& main = *graph_.function()->As<Function>();
    for (const Expr& parameter : main.parameters) AddParameter(parameter);
    if (!options_.input_names.empty()) COLLAGE_TRY_STATUS(Rename(program_.inputs, options_.input_names, "input"));
    const PostDfsIndex body = graph_.IndexOf(main.body);
    for (const PostDfsIndex node : EvaluationOrder(graph_, body)) {
      COLLAGE_TRY_STATUS(Add(node));
      if (node == body) break;  // nobody needs the others
    }
    for (const size_t value : values_.at(main.body.get())) program_.outputs.push_back({"", value});
    NameOutputs();
    if (!options_.output_names.empty()) COLLAGE_TRY_STATUS(Rename(program_.outputs, options_.output_names, "output"));
    return std::move(program_);
  }

 private:
  static Status Rename(std::vector<Endpoint>& endpoints, const std::vector<std::string>& names, const std::string& what) {
    if (endpoints.size() != names.size()) {
      return Fail(std::to_string(names.size()) + " " + what + " names for " + std::to_string(endpoints.size()) + " " + what + "s");
    }
    for (size_t i = 0; i < names.size(); ++i) endpoints[i].name = names[i];
    return {};
  }

  void NameOutputs() {
    const bool several = program_.outputs.size() > 1;
    for (size_t i = 0; i < program_.outputs.size(); ++i) program_.outputs[i].name = several ? "output" + std::to_string(i) : "output";
  }

  size_t AddValue(TensorType type) {
    program_.values.push_back({std::move(type)});
    return program_.values.size() - 1;
  }

  void AddParameter(const Expr& parameter) {
    std::vector<size_t>& values = values_[parameter.get()];
    const std::vector<TensorType> types = FlattenTensors(parameter->type());
    for (size_t i = 0; i < types.size(); ++i) {
      values.push_back(AddValue(types[i]));
      const std::string& name = parameter->As<Var>()->name;
      program_.inputs.push_back({types.size() == 1 ? name : name + "." + std::to_string(i), values.back()});
    }
  }

  /// What it needs is there.
  Status Add(PostDfsIndex node) {
    const Expr& expr = graph_[node].expr;
    if (graph_[node].block != 0) return NotStraightLine();
    if (const Constant* constant = expr->As<Constant>()) {
      const size_t value = AddValue(constant->value.type());
      program_.values[value].constant = constant->value;
      values_[expr.get()] = {value};
    } else if (const Tuple* tuple = expr->As<Tuple>()) {
      values_[expr.get()] = Flatten(tuple->fields);
    } else if (const TupleGetItem* projection = expr->As<TupleGetItem>()) {
      values_[expr.get()] = Project(*projection);
    } else if (const Let* let = expr->As<Let>()) {
      values_[expr.get()] = std::vector<size_t>(values_.at(let->body.get()));
    } else if (const Var* variable = expr->As<Var>()) {
      if (values_.contains(expr.get())) return {};  // a parameter
      if (graph_[node].inputs.empty()) return Fail("%" + variable->name + " is not bound in @main");
      values_[expr.get()] = std::vector<size_t>(values_.at(graph_[graph_[node].inputs.front()].expr.get()));
    } else if (expr->As<Call>()) {
      std::vector<size_t> results = COLLAGE_TRY(AddCall(expr));
      values_[expr.get()] = std::move(results);
    } else if (!IsOnlyCalled(node)) {
      return NotStraightLine();
    }
    return {};
  }

  static Status NotStraightLine() { return Fail("@main is not straight-line: it has an if, or a function used as a value"); }

  /// A function, of the module or a literal that is one operator, that no expression takes as a value.
  [[nodiscard]] bool IsOnlyCalled(PostDfsIndex node) const {
    const Expr& expr = graph_[node].expr;
    if (!expr->As<GlobalVar>() && !IsAtomicFunction(expr)) return false;
    return std::all_of(graph_[node].outputs.begin(), graph_[node].outputs.end(), [&](PostDfsIndex user) {
      const Call* call = graph_[user].expr->As<Call>();
      return call && call->callee == expr && std::find(call->args.begin(), call->args.end(), expr) == call->args.end();
    });
  }

  [[nodiscard]] std::vector<size_t> Flatten(const std::vector<Expr>& exprs) const {
    std::vector<size_t> all;
    for (const Expr& expr : exprs) {
      const std::vector<size_t>& values = values_.at(expr.get());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  [[nodiscard]] std::vector<size_t> Project(const TupleGetItem& projection) const {
    const std::vector<Type>& fields = projection.tuple->type().AsTuple()->fields;
    size_t begin = 0;
    for (size_t i = 0; i < projection.index; ++i) begin += FlattenTensors(fields[i]).size();
    const size_t count = FlattenTensors(fields[projection.index]).size();
    const auto first = values_.at(projection.tuple.get()).begin() + static_cast<std::ptrdiff_t>(begin);
    return {first, first + static_cast<std::ptrdiff_t>(count)};
  }

  Result<std::vector<size_t>> AddCall(const Expr& expr) {
    const Call& call = *expr->As<Call>();
    if (const Op* op = call.callee->As<Op>()) {
      if (op->def->is_view && call.args.size() == 1) return AddView(call, expr->type());
      return AddBareCall(expr, op->def->name);
    }
    if (const GlobalVar* global = call.callee->As<GlobalVar>()) {
      const Expr function = module_.Find(global->name);
      if (!function) return Fail("@main calls @" + global->name + ", which the module does not have");
      if (!IsPrimitive(*function->As<Function>())) return Fail("@main calls @" + global->name + ", which is not Primitive");
      return AddPartition(function, global->name, call);
    }
    const Function* function = call.callee->As<Function>();
    if (!function) return Fail("@main calls something that is no operator, no function literal and no function of the module");
    if (IsPrimitive(*function)) return AddPartition(call.callee, "partition", call);
    return AddBareCall(expr, COLLAGE_TRY(function->attributes.String("Composite", "function")));
  }

  std::vector<size_t> AddView(const Call& call, const Type& type) {
    const size_t source = values_.at(call.args[0].get())[0];
    const size_t value = AddValue(*type.AsTensor());
    program_.values[value].view_of = source;
    return {value};
  }

  Result<std::vector<size_t>> AddBareCall(const Expr& expr, const std::string& label) {
    const std::string symbol = names_.Fresh("collage_" + options_.fallback_backend + "_" + label);
    Attributes attributes{{"Primitive", 1}, {"Compiler", options_.fallback_backend}, {"global_symbol", symbol}};
    const Expr function = COLLAGE_TRY(WrapBareCall(expr, std::move(attributes)));
    std::vector<size_t> inputs;
    for (const Expr& arg : expr->As<Call>()->args) {
      if (arg->As<Constant>()) continue;
      const std::vector<size_t>& values = values_.at(arg.get());
      inputs.insert(inputs.end(), values.begin(), values.end());
    }
    return AddPartitionCall(function, symbol, std::move(inputs));
  }

  /// What needs no kernel; the executor plans memory so that it holds.
  Result<std::vector<size_t>> AddInPlace(const Function& function, const std::vector<size_t>& inputs) {
    const Layout layout = COLLAGE_TRY(Layout::Parse(COLLAGE_TRY(function.attributes.String("Variant", ""))));
    const OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
    const std::string expected = "expected one concatenate, split or strided_slice of its parameters along one axis";
    if (sequence.steps.size() != 1 || sequence.results != sequence.steps[0].outputs) return Fail(expected);
    const OpSequence::Step& step = sequence.steps[0];
    const std::optional<AxisParts> parts = PartsAlongAxis(*step.call->As<Call>(), step.result_type);
    if (!parts) return Fail(expected);
    std::vector<size_t> arguments;
    for (const size_t input : step.inputs) {
      const auto parameter = std::find(sequence.parameters.begin(), sequence.parameters.end(), input);
      if (parameter == sequence.parameters.end()) return Fail(expected);
      arguments.push_back(inputs[static_cast<size_t>(parameter - sequence.parameters.begin())]);
    }
    std::vector<size_t> results;
    for (TensorType& type : FlattenTensors(function.result_type)) results.push_back(AddValue(std::move(type)));
    if (parts->is_join) {
      program_.values[results[0]].join = Program::Join{std::move(arguments), parts->axis, layout};
      return results;
    }
    for (size_t i = 0; i < results.size(); ++i)
      program_.values[results[i]].slice = Program::Slice{arguments[0], parts->axis, parts->begins[i], layout};
    return results;
  }

  Result<std::vector<size_t>> AddPartition(const Expr& function, const std::string& hint, const Call& call) {
    std::string symbol = COLLAGE_TRY(function->As<Function>()->attributes.String("global_symbol", ""));
    if (symbol.empty()) symbol = names_.Fresh(hint);
    names_.Reserve(symbol);
    return AddPartitionCall(function, symbol, Flatten(call.args));
  }

  Result<std::vector<size_t>> AddPartitionCall(const Expr& expr, const std::string& symbol, std::vector<size_t> inputs) {
    const Function& function = *expr->As<Function>();
    if (COLLAGE_TRY(function.attributes.String("Compiler", "")) == kInPlace) {
      Result<std::vector<size_t>> results = AddInPlace(function, inputs);
      return results ? std::move(results) : Fail(results.error().At("partition '" + symbol + "'"));
    }
    PartitionCall call;
    call.record.name = symbol;
    call.record.backend = COLLAGE_TRY(function.attributes.String("Compiler", options_.default_backend));
    call.record.variant = COLLAGE_TRY(function.attributes.String("Variant", ""));
    call.record.device = COLLAGE_TRY(function.attributes.String("Device", ""));
    Result<std::vector<std::string>> operators = OperatorNames(function);
    if (!operators) return Fail(operators.error().At("partition '" + symbol + "'"));
    call.record.operators = std::move(*operators);
    call.record.nodes = OriginOfCalls(expr).OnnxNodes();
    call.function = expr;
    call.inputs = std::move(inputs);
    for (TensorType& type : FlattenTensors(function.result_type)) call.outputs.push_back(AddValue(std::move(type)));
    program_.calls.push_back(std::move(call));
    return program_.calls.back().outputs;
  }

  const IRModule& module_;
  const PartitionProgramOptions& options_;
  const DataflowGraph graph_;
  PartitionProgram program_;
  std::unordered_map<const ExprNode*, std::vector<size_t>> values_;
  NameSupply names_;
};

}  // namespace

Result<PartitionProgram> ToPartitionProgram(const IRModule& module, const PartitionProgramOptions& options) {
  const Expr main = module.Find("main");
  if (!main) return Fail("the module has no @main");
  return Builder(module, main, options).Build();
}

Result<std::vector<std::string>> OperatorNames(const Function& function) {
  const OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
  std::vector<std::string> names;
  for (const OpSequence::Step& step : sequence.steps) names.push_back(step.op->name);
  return names;
}

}  // namespace collage
