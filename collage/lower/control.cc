#include "collage/lower/control.h"

#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "collage/ir/block.h"
#include "collage/ir/failure.h"
#include "collage/ir/visit.h"

namespace collage {
namespace {

using Step = ControlProgram::Step;

bool IsKernel(const Expr& function) { return function->As<Function>()->attributes.Has("Primitive"); }

/// One function as steps over numbered tensors.
class FunctionReader {
 public:
  FunctionReader(const std::unordered_map<std::string, size_t>& functions, const std::unordered_map<std::string, size_t>& blocks)
      : functions_(functions), blocks_(blocks) {}

  Result<ControlProgram::Function> Read(const std::string& name, const Function& function) {
    result_.name = name;
    result_.failure = FailureOf(function);
    for (const Expr& parameter : function.parameters) Add(parameter, parameter->type());
    result_.parameters = result_.types.size();
    const std::vector<const Expr*> order = PostOrderList(function.body);
    std::unordered_set<const ExprNode*> branches;
    for (const Expr* expr : order) {
      const If* branch = (*expr)->As<If>();
      if (branch) branches.insert({branch->then_branch.get(), branch->else_branch.get()});
    }
    for (const Expr* expr : order) {
      if (!branches.contains(expr->get())) COLLAGE_TRY_STATUS(Take(*expr));
    }
    result_.results = COLLAGE_TRY(At(function.body));
    return std::move(result_);
  }

 private:
  const std::vector<size_t>& Add(const Expr& expr, const Type& type) {
    std::vector<size_t>& tensors = tensors_[expr.get()];
    for (TensorType& tensor : FlattenTensors(type)) {
      tensors.push_back(result_.types.size());
      result_.types.push_back(std::move(tensor));
    }
    return tensors;
  }

  Result<std::vector<size_t>> At(const Expr& expr) const {
    const auto found = tensors_.find(expr.get());
    if (found != tensors_.end()) return found->second;
    return Fail("an expression of type " + ToString(expr->type()) + " is neither control flow nor a block");
  }

  Result<std::vector<size_t>> Flatten(const std::vector<Expr>& exprs) const {
    std::vector<size_t> all;
    for (const Expr& expr : exprs) {
      const std::vector<size_t> tensors = COLLAGE_TRY(At(expr));
      all.insert(all.end(), tensors.begin(), tensors.end());
    }
    return all;
  }

  Status Take(const Expr& expr) {
    if (const Constant* constant = expr->As<Constant>()) {
      result_.constants.emplace_back(Add(expr, expr->type())[0], constant->value);
    } else if (const Tuple* tuple = expr->As<Tuple>()) {
      tensors_[expr.get()] = COLLAGE_TRY(Flatten(tuple->fields));
    } else if (const TupleGetItem* item = expr->As<TupleGetItem>()) {
      tensors_[expr.get()] = COLLAGE_TRY(Project(*item));
    } else if (const If* branch = expr->As<If>()) {
      return TakeIf(expr, *branch);
    } else if (expr->As<Call>()) {
      Step step = COLLAGE_TRY(CallOf(expr));
      step.outputs = Add(expr, expr->type());
      result_.steps.push_back(std::move(step));
    }
    return {};
  }

  Result<std::vector<size_t>> Project(const TupleGetItem& item) const {
    const std::vector<size_t> tensors = COLLAGE_TRY(At(item.tuple));
    const std::vector<Type>& fields = item.tuple->type().AsTuple()->fields;
    size_t begin = 0;
    for (size_t i = 0; i < item.index; ++i) begin += FlattenTensors(fields[i]).size();
    const auto first = tensors.begin() + static_cast<std::ptrdiff_t>(begin);
    return std::vector<size_t>(first, first + static_cast<std::ptrdiff_t>(FlattenTensors(fields[item.index]).size()));
  }

  Result<Step> CallOf(const Expr& expr) const {
    const Call* call = expr->As<Call>();
    const GlobalVar* global = call ? call->callee->As<GlobalVar>() : nullptr;
    if (!global) return Fail("an expression of type " + ToString(expr->type()) + " is no call of a function of the module");
    Step step;
    const auto block = blocks_.find(global->name);
    const auto function = functions_.find(global->name);
    if (block == blocks_.end() && function == functions_.end()) return Fail("@" + global->name + " is neither a block nor control flow");
    step.kind = block != blocks_.end() ? Step::Kind::kBlock : Step::Kind::kCall;
    step.callee = block != blocks_.end() ? block->second : function->second;
    step.inputs = COLLAGE_TRY(Flatten(call->args));
    return step;
  }

  Status TakeIf(const Expr& expr, const If& branch) {
    Step step = COLLAGE_TRY(CallOf(branch.then_branch));
    const Step otherwise = COLLAGE_TRY(CallOf(branch.else_branch));
    if (step.kind != Step::Kind::kCall || otherwise.kind != Step::Kind::kCall) return Fail("a branch is a block, expected a function");
    step.kind = Step::Kind::kBranch;
    step.condition = COLLAGE_TRY(At(branch.condition))[0];
    step.otherwise = otherwise.callee;
    step.otherwise_inputs = otherwise.inputs;
    step.outputs = Add(expr, expr->type());
    result_.steps.push_back(std::move(step));
    return {};
  }

  const std::unordered_map<std::string, size_t>& functions_;
  const std::unordered_map<std::string, size_t>& blocks_;
  ControlProgram::Function result_;
  std::unordered_map<const ExprNode*, std::vector<size_t>> tensors_;
};

std::vector<Endpoint> Named(const std::vector<std::string>& names, const std::vector<size_t>& values, const std::string& otherwise) {
  std::vector<Endpoint> endpoints;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string numbered = values.size() == 1 ? otherwise : otherwise + std::to_string(i);
    endpoints.push_back({names.empty() ? numbered : names[i], values[i]});
  }
  return endpoints;
}

}  // namespace

Result<ControlOfModule> ToControlProgram(const IRModule& outlined) {
  ControlOfModule result;
  std::unordered_map<std::string, size_t> functions{{"main", 0}};
  std::unordered_map<std::string, size_t> blocks;
  for (const auto& [name, function] : outlined.functions()) {
    if (IsKernel(function)) continue;
    if (IsBlock(function)) {
      blocks.emplace(name, result.blocks.size());
      result.blocks.push_back(name);
    } else {
      functions.emplace(name, functions.size());
    }
  }
  result.program.functions.resize(functions.size());
  for (const auto& [name, number] : functions) {
    const Expr function = outlined.Find(name);
    if (!function) return Fail("the module has no function @" + name);
    Result<ControlProgram::Function> read = FunctionReader(functions, blocks).Read(name, *function->As<Function>());
    if (!read) return Fail(read.error().At("@" + name));
    result.program.functions[number] = std::move(*read);
  }
  return result;
}

ControlProgram AroundOneBlock(const ShapeProfile& flat) {
  ControlProgram::Function main{"main", {}, 0, {}, {}, {}};
  const auto add = [&](const std::vector<NamedType>& tensors) {
    std::vector<size_t> numbers(tensors.size());
    std::iota(numbers.begin(), numbers.end(), main.types.size());
    for (const NamedType& tensor : tensors) main.types.push_back(tensor.type);
    return numbers;
  };
  Step step;
  step.inputs = add(flat.inputs);
  main.parameters = step.inputs.size();
  step.outputs = add(flat.outputs);
  main.results = step.outputs;
  main.steps.push_back(std::move(step));
  ControlProgram control;
  control.functions.push_back(std::move(main));
  return control;
}

std::vector<std::string> NamesOf(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> names;
  for (const Endpoint& endpoint : endpoints) names.push_back(endpoint.name);
  return names;
}

Result<Executable> JoinExecutables(const ControlProgram& control, std::vector<Executable> blocks, const std::vector<Endpoint>& inputs,
                                   const std::vector<Endpoint>& outputs, const Device& device) {
  return Executable::Create(control, std::move(blocks), NamesOf(inputs), NamesOf(outputs), device);
}

Result<LoweredModel> JoinBlocks(ControlProgram control, std::vector<LoweredModel> blocks, const std::vector<std::string>& input_names,
                                const std::vector<std::string>& output_names, const Device& device) {
  const ControlProgram::Function& main = control.functions[0];
  PartitionProgram whole;
  for (const TensorType& type : main.types) whole.values.push_back({type});
  std::vector<size_t> parameters;
  for (size_t i = 0; i < main.parameters; ++i) parameters.push_back(i);
  const auto fits = [](const std::vector<std::string>& names, const std::vector<size_t>& values) {
    return names.empty() || names.size() == values.size();
  };
  if (!fits(input_names, parameters) || !fits(output_names, main.results))
    return Fail("the names of inputs and outputs are not as many as these");
  whole.inputs = Named(input_names, parameters, "input");
  whole.outputs = Named(output_names, main.results, "output");
  std::vector<PartitionProgram> programs;
  std::vector<Executable> executables;
  for (LoweredModel& block : blocks) {
    programs.push_back(std::move(block.program));
    executables.push_back(std::move(block.executable));
  }
  Executable executable = COLLAGE_TRY(JoinExecutables(control, std::move(executables), whole.inputs, whole.outputs, device));
  return LoweredModel{std::move(whole), std::move(executable), std::move(control), std::move(programs)};
}

Result<LoweredModel> LowerControl(const IRModule& outlined, const LowerOptions& options) {
  ControlOfModule control = COLLAGE_TRY(ToControlProgram(outlined));
  LowerOptions of_block = options;
  of_block.program.input_names.clear();
  of_block.program.output_names.clear();
  IRModule module;  // kernels that blocks call
  for (const auto& [name, function] : outlined.functions()) {
    if (IsKernel(function)) module.Set(name, function);
  }
  std::vector<LoweredModel> blocks;
  for (const std::string& name : control.blocks) {
    module.Set("main", outlined.Find(name));
    Result<LoweredModel> block = Lower(module, of_block);
    if (!block) return Fail(block.error().At("@" + name));
    blocks.push_back(std::move(*block));
  }
  return JoinBlocks(std::move(control.program), std::move(blocks), options.program.input_names, options.program.output_names,
                    options.device);
}

}  // namespace collage
