#include "collage/device/tensor_flow.h"

#include <algorithm>

#include "collage/dataflow/dataflow_graph.h"
#include "collage/support/check.h"

namespace collage {
namespace {

bool IsOnDevice(const Expr& expr) { return IsCallOf(expr, "on_device"); }

std::string TextAttribute(const Attributes& attributes, const char* name) {
  const AttributeValue* value = attributes.Find(name);
  return value && value->AsString() ? *value->AsString() : std::string();
}

}  // namespace

std::vector<TypeLeaf> TypeLeaves(const Type& type) {
  std::vector<TypeLeaf> leaves;
  std::vector<std::pair<const Type*, bool>> pending = {{&type, false}};
  while (!pending.empty()) {
    const auto [next, in_function] = pending.back();
    pending.pop_back();
    if (const TensorType* tensor = next->AsTensor()) {
      leaves.push_back({tensor, in_function});
    } else if (const TupleType* tuple = next->AsTuple()) {
      for (size_t i = tuple->fields.size(); i-- > 0;) pending.emplace_back(&tuple->fields[i], in_function);
    } else if (const FunctionType* function = next->AsFunction()) {
      pending.emplace_back(function->result.get(), true);
      for (size_t i = function->parameters.size(); i-- > 0;) pending.emplace_back(&function->parameters[i], true);
    }
  }
  return leaves;
}

std::span<const TensorLeaf> TensorFlow::Of(const ExprNode* expr) const {
  const auto at = ranges_.find(expr);
  return at == ranges_.end() ? std::span<const TensorLeaf>() : Leaves(at->second);
}

std::span<const TensorLeaf> TensorFlow::ResultOf(const ExprNode* function) const { return Leaves(results_.at(function)); }

std::span<const TensorLeaf> TensorFlow::KernelCall(const ExprNode* call) const { return Leaves(kernel_calls_.at(call)); }

Expr TensorFlow::KernelOf(const Expr& callee) const {
  Expr at = callee;
  while (at->As<Var>()) {
    const auto value = let_values_.find(at.get());
    if (value == let_values_.end()) return nullptr;
    at = value->second;
  }
  if (const GlobalVar* global = at->As<GlobalVar>()) at = module_->Find(global->name);
  return at && IsAtomicFunction(at) ? at : nullptr;
}

DeviceRecord TensorFlow::RecordOf(const OpDef& op) const {
  if (const auto at = records_->find(op.name); at != records_->end()) return at->second;
  return {op.argument_devices, op.result_device};
}

/// Walks the functions once for their order and once for what they say.
class TensorFlowReader {
 public:
  TensorFlowReader(TensorFlow& flow, const DeviceConfiguration& configuration) : flow_(flow), configuration_(configuration) {}

  Status Read() {
    for (const auto& [name, function] : flow_.module_->functions()) {
      flow_.orders_.emplace_back();
      if (!IsAtomicFunction(function)) PutInOrder(function, flow_.orders_.back());
    }
    // Functions call each other in any order, so what they take and give is numbered first.
    for (const auto& [name, function] : flow_.module_->functions()) {
      if (!IsAtomicFunction(function)) SetUpFunction(function);
      ++function_;
    }
    for (function_ = 0; function_ < flow_.orders_.size(); ++function_) {
      for (const Expr& expr : flow_.orders_[function_]) COLLAGE_TRY_STATUS(Visit(expr));
    }
    return {};
  }

 private:
  using Range = TensorFlow::Range;

  void PutInOrder(const Expr& root, std::vector<Expr>& order) {
    std::vector<std::pair<Expr, bool>> stack = {{root, false}};
    while (!stack.empty()) {
      const auto [expr, children_done] = stack.back();
      stack.pop_back();
      if (children_done) {
        order.push_back(expr);
        continue;
      }
      if (!seen_.insert(expr.get()).second) continue;
      if (const Let* let = expr->As<Let>()) {
        flow_.let_values_.emplace(let->variable.get(), let->value);
        if (IsOnDevice(let->value)) constrains_result_.insert(let->value.get());
      }
      if (const Function* function = expr->As<Function>(); function && !IsAtomicFunction(expr)) MarkEnd(function->body);
      stack.emplace_back(expr, true);
      const std::vector<const Expr*> children = NodeChildren(expr);
      for (size_t i = children.size(); i-- > 0;) {
        if (!seen_.contains(children[i]->get())) stack.emplace_back(*children[i], false);
      }
    }
  }

  void MarkEnd(const Expr& body) {
    const Expr* end = &body;
    while (const Let* let = (*end)->As<Let>()) end = &let->body;
    if (IsOnDevice(*end)) constrains_result_.insert(end->get());
  }

  // Numbering.

  uint32_t AddMaker(const Expr& expr, bool is_constant = false, bool is_shape = false) {
    flow_.makers.push_back({expr, function_, is_constant, is_shape});
    return static_cast<uint32_t>(flow_.makers.size() - 1);
  }

  uint32_t AddTensor(const TensorType& type, bool is_operator_result = false) {
    return static_cast<uint32_t>(flow_.classes.Add(type.shape.empty(), is_operator_result));
  }

  Range Begin() const { return {static_cast<uint32_t>(flow_.leaves_.size()), 0}; }
  void Append(Range& range, TensorLeaf leaf) {
    flow_.leaves_.push_back(leaf);
    ++range.count;
  }
  void AppendAll(Range& range, Range other) {
    for (uint32_t i = 0; i < other.count; ++i) Append(range, TensorLeaf(flow_.leaves_[other.first + i]));
  }

  /// A tensor of its own for each of a type; those outside of functions are made by `maker`.
  Range Fresh(const Type& type, uint32_t maker, bool is_operator_result = false) {
    Range range = Begin();
    for (const TypeLeaf& leaf : TypeLeaves(type)) {
      const uint32_t field = range.count;
      Append(range, {AddTensor(*leaf.type, is_operator_result), leaf.in_function ? TensorLeaf::kNoMaker : maker, field});
    }
    return range;
  }

  void SetUpFunction(const Expr& expr) {
    const Function& function = *expr->As<Function>();
    for (const Expr& parameter : function.parameters) {
      if (!flow_.ranges_.contains(parameter.get())) flow_.ranges_[parameter.get()] = Fresh(parameter->type(), AddMaker(parameter));
    }
    const Range result = Fresh(function.result_type, TensorLeaf::kNoMaker);
    flow_.results_[expr.get()] = result;
    Range whole = Begin();
    for (const Expr& parameter : function.parameters) AppendAll(whole, flow_.ranges_.at(parameter.get()));
    AppendAll(whole, result);
    flow_.ranges_[expr.get()] = whole;
  }

  /// The tensors of an expression that has been visited; those of a kernel used as a value are made here.
  Result<Range> RangeOf(const Expr& expr) {
    Expr at = expr;
    for (;;) {
      if (const auto range = flow_.ranges_.find(at.get()); range != flow_.ranges_.end()) return range->second;
      const auto value = flow_.let_values_.find(at.get());
      if (value == flow_.let_values_.end()) break;
      at = value->second;
    }
    if (const GlobalVar* global = at->As<GlobalVar>()) at = flow_.module_->Find(global->name);
    if (!flow_.ranges_.contains(at.get())) {
      COLLAGE_CHECK(IsAtomicFunction(at));
      flow_.ranges_[at.get()] = COLLAGE_TRY(Kernel(at, TensorLeaf::kNoMaker));
    }
    const Range range = flow_.ranges_.at(at.get());
    flow_.ranges_[expr.get()] = range;
    return range;
  }

  [[nodiscard]] TensorLeaf LeafAt(Range range, size_t i) const { return flow_.leaves_[range.first + i]; }
  [[nodiscard]] bool IsConstant(const TensorLeaf& leaf) const {
    return leaf.maker != TensorLeaf::kNoMaker && flow_.makers[leaf.maker].is_constant;
  }
  [[nodiscard]] bool IsShape(const TensorLeaf& leaf) const {
    return leaf.maker != TensorLeaf::kNoMaker && flow_.makers[leaf.maker].is_shape;
  }

  // What is said.

  void State(uint32_t tensor, const VirtualDevice& device, const Expr& by) {
    std::vector<DeviceStatement>& all = flow_.statements;
    if (all.empty() || all.back().by != by || !(all.back().device == device)) all.push_back({device, by, function_});
    flow_.stated.push_back({tensor, static_cast<uint32_t>(all.size() - 1)});
  }

  Status StateAll(Range range, const Type& type, const std::string& text, const Expr& by) {
    if (text.empty()) return {};
    const std::vector<VirtualDevice> devices = COLLAGE_TRY(ParseDevices(text, type));
    for (size_t i = 0; i < devices.size(); ++i) State(LeafAt(range, i).tensor, devices[i], by);
    return {};
  }

  /// `place` is read where the user needs it; equal places cross unless it is a constant, which is loaded there.
  void Use(const TensorLeaf& leaf, uint32_t place, const Expr& user, size_t part, size_t index) {
    if (leaf.maker == TensorLeaf::kNoMaker || IsConstant(leaf)) return;
    flow_.uses.push_back({leaf.maker, leaf.field, place, user, static_cast<uint32_t>(part), static_cast<uint32_t>(index), function_});
  }

  /// A value goes to where tensors of the same type are expected. Functions are never copied: they agree.
  void Pass(Range from, Range to, const Type& type, const Expr& user, size_t part, bool is_branch = false) {
    const std::vector<TypeLeaf> types = TypeLeaves(type);
    for (size_t i = 0; i < types.size(); ++i) {
      const TensorLeaf leaf = LeafAt(from, i);
      const TensorLeaf target = LeafAt(to, i);
      if (types[i].in_function) {
        flow_.classes.Unify(leaf.tensor, target.tensor);
        continue;
      }
      if (!IsConstant(leaf)) (is_branch ? flow_.branch_crossings : flow_.crossings).push_back({leaf.tensor, target.tensor});
      Use(leaf, target.tensor, user, part, i);
    }
  }

  void ReadOnHost(const TensorLeaf& leaf, const Expr& user, size_t part, size_t index) {
    if (IsConstant(leaf)) return;
    flow_.read_by_host.push_back(leaf.tensor);
    if (leaf.maker != TensorLeaf::kNoMaker) {
      flow_.read_by_host.push_back(LeafAt(flow_.ranges_.at(flow_.makers[leaf.maker].expr.get()), leaf.field).tensor);
    }
    Use(leaf, TensorUse::kOnHost, user, part, index);
  }

  // Visiting, children first.

  Status Visit(const Expr& expr) {
    if (const Var* variable = expr->As<Var>()) return VisitVariable(expr, *variable);
    if (expr->As<GlobalVar>()) return VisitGlobal(expr);
    if (expr->As<Constant>()) {
      flow_.ranges_[expr.get()] = Fresh(expr->type(), AddMaker(expr, true));
      return {};
    }
    if (const Call* call = expr->As<Call>()) return VisitCall(expr, *call);
    if (const Tuple* tuple = expr->As<Tuple>()) return VisitTuple(expr, *tuple);
    if (const TupleGetItem* item = expr->As<TupleGetItem>()) return VisitProjection(expr, *item);
    if (const Let* let = expr->As<Let>()) return VisitLet(expr, *let);
    if (const If* branch = expr->As<If>()) return VisitIf(expr, *branch);
    return IsAtomicFunction(expr) ? Status() : VisitFunction(expr, *expr->As<Function>());
  }

  Status VisitVariable(const Expr& expr, const Var& variable) {
    if (const auto value = flow_.let_values_.find(expr.get()); value != flow_.let_values_.end()) {
      if (flow_.KernelOf(expr)) return {};
      // The value of a let comes first, unless it is a function that calls itself.
      const auto range = flow_.ranges_.find(value->second.get());
      flow_.ranges_[expr.get()] = range == flow_.ranges_.end() ? Fresh(expr->type(), TensorLeaf::kNoMaker) : range->second;
      return {};
    }
    if (!flow_.ranges_.contains(expr.get())) flow_.ranges_[expr.get()] = Fresh(expr->type(), AddMaker(expr));
    return StateAll(flow_.ranges_.at(expr.get()), expr->type(), variable.virtual_device, expr);
  }

  Status VisitGlobal(const Expr& expr) {
    if (!flow_.KernelOf(expr)) flow_.ranges_[expr.get()] = flow_.ranges_.at(flow_.module_->Find(expr->As<GlobalVar>()->name).get());
    return {};
  }

  Status VisitTuple(const Expr& expr, const Tuple& tuple) {
    std::vector<Range> fields;
    for (const Expr& field : tuple.fields) fields.push_back(COLLAGE_TRY(RangeOf(field)));
    Range range = Begin();
    for (const Range& field : fields) AppendAll(range, field);
    flow_.ranges_[expr.get()] = range;
    return {};
  }

  Status VisitProjection(const Expr& expr, const TupleGetItem& item) {
    const Range tuple = COLLAGE_TRY(RangeOf(item.tuple));
    const std::vector<uint32_t>& offsets = FieldOffsets(item.tuple);
    flow_.ranges_[expr.get()] = {tuple.first + offsets[item.index], offsets[item.index + 1] - offsets[item.index]};
    return {};
  }

  /// Counted once for a tuple, since each of its fields may be projected.
  const std::vector<uint32_t>& FieldOffsets(const Expr& tuple) {
    std::vector<uint32_t>& offsets = field_offsets_[tuple.get()];
    if (!offsets.empty()) return offsets;
    offsets.push_back(0);
    for (const Type& field : tuple->type().AsTuple()->fields) {
      offsets.push_back(offsets.back() + static_cast<uint32_t>(CountDeviceTensors(field)));
    }
    return offsets;
  }

  Status VisitLet(const Expr& expr, const Let& let) {
    if (!flow_.KernelOf(let.variable)) {
      const Range variable = COLLAGE_TRY(RangeOf(let.variable));
      const Range value = COLLAGE_TRY(RangeOf(let.value));
      for (size_t i = 0; variable.first != value.first && i < value.count; ++i) {
        flow_.classes.Unify(LeafAt(variable, i).tensor, LeafAt(value, i).tensor);
      }
    }
    flow_.ranges_[expr.get()] = COLLAGE_TRY(RangeOf(let.body));
    return {};
  }

  Status VisitIf(const Expr& expr, const If& branch) {
    const Range condition = COLLAGE_TRY(RangeOf(branch.condition));
    const Range then_range = COLLAGE_TRY(RangeOf(branch.then_branch));
    const Range else_range = COLLAGE_TRY(RangeOf(branch.else_branch));
    ReadOnHost(LeafAt(condition, 0), expr, 0, 0);
    const Range range = Fresh(expr->type(), AddMaker(expr));
    flow_.ranges_[expr.get()] = range;
    Pass(then_range, range, expr->type(), expr, 1, true);
    Pass(else_range, range, expr->type(), expr, 2, true);
    return {};
  }

  Status VisitFunction(const Expr& expr, const Function& function) {
    if (!flow_.ranges_.contains(expr.get())) SetUpFunction(expr);
    const Range result = flow_.results_.at(expr.get());
    COLLAGE_TRY_STATUS(StateAll(result, function.result_type, TextAttribute(function.attributes, "virtual_device"), expr));
    Pass(COLLAGE_TRY(RangeOf(function.body)), result, function.result_type, expr, 0);
    return {};
  }

  Status VisitCall(const Expr& expr, const Call& call) {
    std::vector<Range> arguments;
    for (const Expr& argument : call.args) arguments.push_back(COLLAGE_TRY(RangeOf(argument)));
    if (const OpDef* op = CalledOp(expr)) {
      if (op->name == "on_device") return VisitOnDevice(expr, call, arguments[0]);
      if (op->name == "device_copy") return VisitDeviceCopy(expr, call, arguments[0]);
      return VisitOperator(expr, *op, arguments);
    }
    const Expr kernel = flow_.KernelOf(call.callee);
    const uint32_t maker = AddMaker(expr);
    const Range callee = kernel ? COLLAGE_TRY(Kernel(kernel, maker)) : COLLAGE_TRY(RangeOf(call.callee));
    if (kernel) {
      flow_.kernel_calls_[expr.get()] = callee;
      StateCompiler(expr, *kernel->As<Function>(), callee);
    }
    uint32_t first = callee.first;
    for (size_t i = 0; i < arguments.size(); first += arguments[i++].count) {
      Pass(arguments[i], {first, arguments[i].count}, call.args[i]->type(), expr, i);
    }
    Range result = Begin();
    const std::vector<TypeLeaf> types = TypeLeaves(expr->type());
    for (size_t i = 0; i < types.size(); ++i) {
      const uint32_t tensor = flow_.leaves_[first + i].tensor;
      Append(result, {tensor, types[i].in_function ? TensorLeaf::kNoMaker : maker, static_cast<uint32_t>(i)});
    }
    flow_.ranges_[expr.get()] = result;
    return {};
  }

  /// Parameters and results of a kernel as it runs once: one device, scopes as its signature states.
  Result<Range> Kernel(const Expr& expr, uint32_t maker) {
    const Function& kernel = *expr->As<Function>();
    const Range whole = Fresh(expr->type(), TensorLeaf::kNoMaker, maker != TensorLeaf::kNoMaker);
    for (uint32_t i = 1; i < whole.count; ++i) flow_.classes.UnifyDevices(LeafAt(whole, 0).tensor, LeafAt(whole, i).tensor);
    uint32_t first = whole.first;
    for (const Expr& parameter : kernel.parameters) {
      const auto count = static_cast<uint32_t>(CountDeviceTensors(parameter->type()));
      COLLAGE_TRY_STATUS(StateAll({first, count}, parameter->type(), parameter->As<Var>()->virtual_device, expr));
      first += count;
    }
    const Range result{first, whole.first + whole.count - first};
    COLLAGE_TRY_STATUS(StateAll(result, kernel.result_type, TextAttribute(kernel.attributes, "virtual_device"), expr));
    return whole;
  }

  void StateCompiler(const Expr& call, const Function& kernel, Range callee) {
    const std::string compiler = TextAttribute(kernel.attributes, "Compiler");
    if (compiler.empty() || compiler == "native" || callee.count == 0) return;
    const ListedDevice* only = nullptr;
    size_t count = 0;
    for (const ListedDevice& device : configuration_.devices()) {
      if (!device.HasCompiler(compiler)) continue;
      only = &device;
      ++count;
    }
    if (count == 1) State(LeafAt(callee, 0).tensor, only->Place(), call);
    if (count == 0) flow_.unknown_compilers.push_back({{}, call, function_, "-compiler=" + compiler});
  }

  Status VisitOperator(const Expr& expr, const OpDef& op, const std::vector<Range>& arguments) {
    const DeviceRecord record = flow_.RecordOf(op);
    const bool is_shape = op.makes_shape_value || AllAreShapes(arguments);
    const uint32_t maker = AddMaker(expr, false, is_shape);
    const std::vector<TypeLeaf> types = TypeLeaves(expr->type());
    const bool scalars = std::all_of(types.begin(), types.end(), [](const TypeLeaf& leaf) { return leaf.type->shape.empty(); });
    const auto tensor = static_cast<uint32_t>(flow_.classes.Add(scalars, true));
    if (record.result == DeviceUse::kHost) State(tensor, configuration_.host(), expr);
    for (size_t i = 0; i < arguments.size(); ++i) {
      const DeviceUse use = i < record.arguments.size() ? record.arguments[i] : DeviceUse::kSame;
      if (use == DeviceUse::kAny) continue;
      for (size_t k = 0; k < arguments[i].count; ++k) {
        const TensorLeaf leaf = LeafAt(arguments[i], k);
        if (use == DeviceUse::kHost) {
          ReadOnHost(leaf, expr, i, k);
          continue;
        }
        // Lest a shape draw the model onto the host.
        const bool apart = IsConstant(leaf) || (IsShape(leaf) && !is_shape);
        if (!apart) flow_.crossings.push_back({leaf.tensor, tensor});
        Use(leaf, tensor, expr, i, k);
      }
    }
    Range range = Begin();
    for (uint32_t i = 0; i < types.size(); ++i) Append(range, {tensor, maker, i});
    flow_.ranges_[expr.get()] = range;
    return {};
  }

  [[nodiscard]] bool AllAreShapes(const std::vector<Range>& arguments) const {
    bool any = false;
    for (const Range& argument : arguments) {
      for (size_t k = 0; k < argument.count; ++k) {
        const TensorLeaf leaf = LeafAt(argument, k);
        if (IsConstant(leaf)) continue;
        if (!IsShape(leaf)) return false;
        any = true;
      }
    }
    return any;
  }

  Status VisitDeviceCopy(const Expr& expr, const Call& call, Range argument) {
    const uint32_t maker = AddMaker(expr, false, AllAreShapes({argument}));
    const std::vector<TypeLeaf> types = TypeLeaves(expr->type());
    Range range = Begin();
    for (uint32_t i = 0; i < types.size(); ++i) {
      const TensorLeaf leaf = LeafAt(argument, i);
      Append(range, types[i].in_function ? leaf : TensorLeaf{AddTensor(*types[i].type), maker, i});
    }
    flow_.ranges_[expr.get()] = range;
    COLLAGE_TRY_STATUS(StateAll(argument, expr->type(), TextAttribute(call.attributes, "src_virtual_device"), expr));
    COLLAGE_TRY_STATUS(StateAll(range, expr->type(), TextAttribute(call.attributes, "dst_virtual_device"), expr));
    for (size_t i = 0; i < types.size(); ++i) {
      if (!types[i].in_function) Use(LeafAt(argument, i), LeafAt(argument, i).tensor, expr, 0, i);
    }
    flow_.device_copies.push_back(expr);
    return {};
  }

  Status VisitOnDevice(const Expr& expr, const Call& call, Range body) {
    const bool of_body = COLLAGE_TRY(call.attributes.Bool("constrain_body", true));
    const bool of_result = constrains_result_.contains(expr.get()) || COLLAGE_TRY(call.attributes.Bool("constrain_result", false));
    const std::vector<VirtualDevice> devices = COLLAGE_TRY(ParseDevices(TextAttribute(call.attributes, "virtual_device"), expr->type()));
    const std::vector<TypeLeaf> types = TypeLeaves(expr->type());
    Range range = Begin();
    for (uint32_t i = 0; i < types.size(); ++i) {
      const TensorLeaf leaf = LeafAt(body, i);
      if (types[i].in_function || (of_body && of_result && !IsConstant(leaf))) {
        if (of_body || of_result) State(leaf.tensor, devices[i], expr);
        Append(range, leaf);
        continue;
      }
      const uint32_t result = AddTensor(*types[i].type);
      // A constant is wherever it is used, so that nothing about it can be contradicted.
      if (of_body && !IsConstant(leaf)) State(leaf.tensor, devices[i], expr);
      if (of_result || IsConstant(leaf)) State(result, devices[i], expr);
      if (!of_body && !of_result && !IsConstant(leaf)) flow_.crossings.push_back({leaf.tensor, result});
      Append(range, {result, leaf.maker, leaf.field});
    }
    flow_.ranges_[expr.get()] = range;
    return {};
  }

  TensorFlow& flow_;
  const DeviceConfiguration& configuration_;
  size_t function_ = 0;
  std::unordered_set<const ExprNode*> seen_;
  std::unordered_set<const ExprNode*> constrains_result_;
  std::unordered_map<const ExprNode*, std::vector<uint32_t>> field_offsets_;
};

Result<TensorFlow> TensorFlow::Read(const IRModule& module, const DeviceConfiguration& configuration, const DeviceRecords& records) {
  TensorFlow flow;
  flow.module_ = &module;
  flow.records_ = &records;
  COLLAGE_TRY_STATUS(TensorFlowReader(flow, configuration).Read());
  return flow;
}

}  // namespace collage
