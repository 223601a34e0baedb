#include "tests/device/naive_planner.h"

#include <functional>
#include <optional>

#include "collage/dataflow/dataflow_graph.h"

namespace collage {
namespace {

/// A value as its tensors: a leaf, or what a tuple or a function (parameters, then result) is made of.
struct Tree {
  int tensor = -1;
  bool is_function = false;
  std::vector<Tree> parts;
  const ExprNode* maker = nullptr;
  size_t field = 0;
};

void Leaves(Tree& tree, const std::function<void(Tree&, bool)>& visit, bool in_function = false) {
  if (tree.tensor >= 0) return visit(tree, in_function);
  for (Tree& part : tree.parts) Leaves(part, visit, in_function || tree.is_function);
}

class Naive {
 public:
  Naive(const IRModule& module, const DeviceConfiguration& configuration) : module_(module), configuration_(configuration) {}

  NaivePlan Run() {
    for (const auto& [name, function] : module_.functions()) {
      if (!IsAtomicFunction(function)) signatures_[function.get()] = Signature(function);
    }
    for (const auto& [name, function] : module_.functions()) {
      if (!IsAtomicFunction(function)) Value(function);
    }
    for (const auto& [a, b] : exact_) Merge(a, b, true, true, true);
    for (const auto& [a, b] : one_device_) Merge(a, b, true, false, false);
    for (const Statement& statement : statements_) State(statement);
    if (!plan_.error_kinds.empty()) return plan_;
    for (const auto& [a, b] : crossings_) Cross(a, b);
    for (const auto& [a, b] : late_) Cross(a, b);
    Defaults();
    if (!plan_.error_kinds.empty()) return plan_;
    JoinScopes();
    FindCopies();
    for (auto& [expr, tree] : values_) Report(expr, tree);
    return plan_;
  }

 private:
  struct Statement {
    int tensor;
    VirtualDevice device;
  };
  struct Use {
    Tree leaf;
    int place;  // -1: the host
    const ExprNode* user;
  };

  int NewTensor(const TensorType& type, bool made_by_operator = false) {
    type_.emplace_back();
    id_.emplace_back();
    target_.emplace_back();
    scope_.emplace_back();
    const int tensor = static_cast<int>(device_label_.size());
    device_label_.push_back(tensor);
    target_label_.push_back(tensor);
    scope_label_.push_back(tensor);
    scalar_.push_back(type.shape.empty());
    operator_result_.push_back(made_by_operator);
    return tensor;
  }

  Tree NewTree(const Type& type, const ExprNode* maker, size_t& field, bool made_by_operator = false) {
    Tree tree;
    if (const TensorType* tensor = type.AsTensor()) {
      tree.tensor = NewTensor(*tensor, made_by_operator);
      tree.maker = maker;
      tree.field = field++;
    } else if (const TupleType* tuple = type.AsTuple()) {
      for (const Type& part : tuple->fields) tree.parts.push_back(NewTree(part, maker, field, made_by_operator));
    } else {
      tree.is_function = true;
      for (const Type& part : type.AsFunction()->parameters) tree.parts.push_back(NewTree(part, nullptr, field, made_by_operator));
      tree.parts.push_back(NewTree(*type.AsFunction()->result, nullptr, field, made_by_operator));
    }
    return tree;
  }
  Tree NewTree(const Type& type, const ExprNode* maker, bool made_by_operator = false) {
    size_t field = 0;
    return NewTree(type, maker, field, made_by_operator);
  }

  static void Remake(Tree& tree, const ExprNode* maker) {
    size_t field = 0;
    Leaves(tree, [&](Tree& leaf, bool in_function) {
      leaf.maker = in_function ? nullptr : maker;
      leaf.field = field++;
    });
  }

  Tree Signature(const Expr& expr) {
    const Function& function = *expr->As<Function>();
    Tree tree;
    tree.is_function = true;
    for (const Expr& parameter : function.parameters) {
      tree.parts.push_back(NewTree(parameter->type(), parameter.get()));
      values_[parameter.get()] = tree.parts.back();
    }
    tree.parts.push_back(NewTree(function.result_type, nullptr));
    return tree;
  }

  void StateText(Tree tree, const std::string& text, const Type& type) {
    if (text.empty()) return;
    const std::vector<VirtualDevice> devices = *ParseDevices(text, type);
    size_t at = 0;
    Leaves(tree, [&](Tree& leaf, bool) { statements_.push_back({leaf.tensor, devices[at++]}); });
  }

  static std::string Text(const Attributes& attributes, const char* name) { return attributes.String(name, "").value_or(""); }
  [[nodiscard]] bool IsConstant(const Tree& leaf) const { return constants_.contains(leaf.maker); }

  void Pass(Tree from, Tree to, const ExprNode* user, bool late = false) {
    std::vector<std::pair<Tree, bool>> left;
    std::vector<Tree> right;
    Leaves(from, [&](Tree& leaf, bool in_function) { left.emplace_back(leaf, in_function); });
    Leaves(to, [&](Tree& leaf, bool) { right.push_back(leaf); });
    for (size_t i = 0; i < left.size(); ++i) {
      const auto& [leaf, in_function] = left[i];
      if (in_function) {
        exact_.emplace_back(leaf.tensor, right[i].tensor);
      } else if (!IsConstant(leaf)) {
        (late ? late_ : crossings_).emplace_back(leaf.tensor, right[i].tensor);
        uses_.push_back({leaf, right[i].tensor, user});
      }
    }
  }

  void OnHost(const Tree& leaf, const ExprNode* user) {
    if (IsConstant(leaf)) return;
    host_reads_.insert(leaf.tensor);
    host_reads_.insert(TensorOf(leaf));
    uses_.push_back({leaf, -1, user});
  }

  int TensorOf(const Tree& leaf) {
    Tree made = values_.at(leaf.maker);
    std::vector<int> tensors;
    Leaves(made, [&](Tree& part, bool) { tensors.push_back(part.tensor); });
    return tensors[leaf.field];
  }

  Expr KernelOf(const Expr& callee) const {
    Expr at = callee;
    while (at->As<Var>() && lets_.contains(at.get())) at = lets_.at(at.get());
    if (const GlobalVar* global = at->As<GlobalVar>()) at = module_.Find(global->name);
    return IsAtomicFunction(at) ? at : nullptr;
  }

  static bool EndsIn(const Expr& body, const Expr& expr) {
    const Let* let = body->As<Let>();
    return let ? EndsIn(let->body, expr) : body == expr;
  }

  Tree Value(const Expr& expr) {
    if (const auto known = values_.find(expr.get()); known != values_.end() && visited_.contains(expr.get())) return known->second;
    visited_.insert(expr.get());
    return values_[expr.get()] = Compute(expr);
  }

  Tree Compute(const Expr& expr) {
    if (const Var* variable = expr->As<Var>()) {
      if (!values_.contains(expr.get())) values_[expr.get()] = NewTree(expr->type(), lets_.contains(expr.get()) ? nullptr : expr.get());
      StateText(values_[expr.get()], variable->virtual_device, expr->type());
      return values_[expr.get()];
    }
    if (const GlobalVar* global = expr->As<GlobalVar>()) return signatures_.at(module_.Find(global->name).get());
    if (expr->As<Constant>()) {
      constants_.insert(expr.get());
      return NewTree(expr->type(), expr.get());
    }
    if (const Tuple* tuple = expr->As<Tuple>()) {
      Tree tree;
      for (const Expr& field : tuple->fields) tree.parts.push_back(Value(field));
      return tree;
    }
    if (const TupleGetItem* item = expr->As<TupleGetItem>()) return Value(item->tuple).parts[item->index];
    if (const Let* let = expr->As<Let>()) return ComputeLet(*let);
    if (const If* branch = expr->As<If>()) return ComputeIf(expr, *branch);
    if (const Function* function = expr->As<Function>()) return ComputeFunction(expr, *function);
    return ComputeCall(expr, *expr->As<Call>());
  }

  Tree ComputeLet(const Let& let) {
    lets_[let.variable.get()] = let.value;
    if (IsCallOf(let.value, "on_device")) fixed_.insert(let.value.get());
    if (KernelOf(let.variable)) return Value(let.body);
    if (let.value->type().AsFunction()) {
      values_[let.variable.get()] = NewTree(let.variable->type(), nullptr);
      visited_.insert(let.variable.get());
      Tree one = values_[let.variable.get()];
      Tree two = Value(let.value);
      std::vector<int> tensors;
      Leaves(one, [&](Tree& leaf, bool) { tensors.push_back(leaf.tensor); });
      size_t at = 0;
      Leaves(two, [&](Tree& leaf, bool) { exact_.emplace_back(tensors[at++], leaf.tensor); });
    } else {
      values_[let.variable.get()] = Value(let.value);
      visited_.insert(let.variable.get());
    }
    return Value(let.body);
  }

  Tree ComputeIf(const Expr& expr, const If& branch) {
    const Tree condition = Value(branch.condition);
    const Tree then_value = Value(branch.then_branch);
    const Tree else_value = Value(branch.else_branch);
    OnHost(condition, expr.get());
    Tree tree = NewTree(expr->type(), expr.get());
    values_[expr.get()] = tree;
    Pass(then_value, tree, expr.get(), true);
    Pass(else_value, tree, expr.get(), true);
    return tree;
  }

  Tree ComputeFunction(const Expr& expr, const Function& function) {
    if (IsAtomicFunction(expr)) return {};
    if (!signatures_.contains(expr.get())) signatures_[expr.get()] = Signature(expr);
    const Tree tree = signatures_.at(expr.get());
    const Expr* end = &function.body;
    while (const Let* let = (*end)->As<Let>()) end = &let->body;
    if (IsCallOf(*end, "on_device")) fixed_.insert(end->get());
    for (const Expr& parameter : function.parameters) Value(parameter);
    const Tree body = Value(function.body);
    StateText(tree.parts.back(), Text(function.attributes, "virtual_device"), function.result_type);
    Pass(body, tree.parts.back(), expr.get());
    return tree;
  }

  Tree ComputeCall(const Expr& expr, const Call& call) {
    const OpDef* op = CalledOp(expr);
    const Expr kernel = op ? nullptr : KernelOf(call.callee);
    Tree callee;
    if (!op && !kernel) callee = Value(call.callee);
    std::vector<Tree> arguments;
    for (const Expr& argument : call.args) arguments.push_back(Value(argument));
    if (op && op->name == "on_device") return OnDevice(expr, call, arguments[0]);
    if (op && op->name == "device_copy") return DeviceCopy(expr, call, arguments[0]);
    if (op) return Operator(expr, *op, arguments);
    if (kernel) callee = Kernel(expr, *kernel->As<Function>());
    for (size_t i = 0; i < arguments.size(); ++i) Pass(arguments[i], callee.parts[i], expr.get());
    Tree result = callee.parts.back();
    Remake(result, expr.get());
    return result;
  }

  Tree Kernel(const Expr& call, const Function& kernel) {
    Tree tree;
    tree.is_function = true;
    std::vector<int> all;
    for (const Expr& parameter : kernel.parameters) tree.parts.push_back(NewTree(parameter->type(), nullptr, true));
    tree.parts.push_back(NewTree(kernel.result_type, call.get(), true));
    Leaves(tree, [&](Tree& leaf, bool) { all.push_back(leaf.tensor); });
    for (const int tensor : all) one_device_.emplace_back(all[0], tensor);
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      StateText(tree.parts[i], kernel.parameters[i]->As<Var>()->virtual_device, kernel.parameters[i]->type());
    }
    StateText(tree.parts.back(), Text(kernel.attributes, "virtual_device"), kernel.result_type);
    const std::string compiler = Text(kernel.attributes, "Compiler");
    std::vector<const ListedDevice*> having;
    for (const ListedDevice& device : configuration_.devices()) {
      for (const Target& target : device.targets) {
        if (!compiler.empty() && target.Attribute("compiler") == compiler) having.push_back(&device);
      }
    }
    if (!compiler.empty() && having.empty()) plan_.error_kinds.insert("unknown-target");
    if (having.size() == 1) statements_.push_back({all[0], having[0]->Place()});
    return tree;
  }

  Tree Operator(const Expr& expr, const OpDef& op, std::vector<Tree>& arguments) {
    bool all_shapes = true;
    bool any = false;
    for (Tree& argument : arguments) {
      Leaves(argument, [&](Tree& leaf, bool) {
        if (IsConstant(leaf)) return;
        any = true;
        all_shapes = all_shapes && shapes_.contains(leaf.maker);
      });
    }
    const bool is_shape = op.name == "shape_of" || (any && all_shapes);
    if (is_shape) shapes_.insert(expr.get());
    Tree tree = NewTree(expr->type(), expr.get(), true);
    int first = -1;
    Leaves(tree, [&](Tree& leaf, bool) {
      if (first < 0) first = leaf.tensor;
      exact_.emplace_back(first, leaf.tensor);
    });
    if (op.name == "shape_of") {
      statements_.push_back({first, configuration_.host()});
      return tree;
    }
    for (Tree& argument : arguments) {
      Leaves(argument, [&](Tree& leaf, bool) {
        if (IsConstant(leaf)) return;
        if (is_shape || !shapes_.contains(leaf.maker)) crossings_.emplace_back(leaf.tensor, first);
        uses_.push_back({leaf, first, expr.get()});
      });
    }
    return tree;
  }

  Tree DeviceCopy(const Expr& expr, const Call& call, Tree argument) {
    bool all_shapes = true;
    Leaves(argument, [&](Tree& leaf, bool) { all_shapes = all_shapes && shapes_.contains(leaf.maker); });
    if (all_shapes) shapes_.insert(expr.get());
    const Tree tree = NewTree(expr->type(), expr.get());
    StateText(argument, Text(call.attributes, "src_virtual_device"), expr->type());
    StateText(tree, Text(call.attributes, "dst_virtual_device"), expr->type());
    copies_.push_back({expr.get(), argument, tree});
    Leaves(argument, [&](Tree& leaf, bool) {
      if (!IsConstant(leaf)) uses_.push_back({leaf, leaf.tensor, expr.get()});
    });
    return tree;
  }

  Tree OnDevice(const Expr& expr, const Call& call, Tree tree) {
    const bool body = call.attributes.Bool("constrain_body", true).value_or(true);
    const bool result = fixed_.contains(expr.get()) || call.attributes.Bool("constrain_result", false).value_or(false);
    const std::vector<VirtualDevice> devices = *ParseDevices(Text(call.attributes, "virtual_device"), expr->type());
    size_t at = 0;
    Leaves(tree, [&](Tree& leaf, bool) {
      const VirtualDevice& device = devices[at++];
      if (IsConstant(leaf)) {
        leaf.tensor = NewTensor({});
        statements_.push_back({leaf.tensor, device});
        return;
      }
      if (body) statements_.push_back({leaf.tensor, device});
      if (body && result) return;
      const int outside = NewTensor({{1}, DType::kFloat32});
      scalar_[static_cast<size_t>(outside)] = scalar_[static_cast<size_t>(leaf.tensor)];
      if (result) statements_.push_back({outside, device});
      if (!body && !result) crossings_.emplace_back(leaf.tensor, outside);
      leaf.tensor = outside;
    });
    return tree;
  }

  // Solving.

  void Relabel(std::vector<int>& labels, int from, int to) {
    for (int& label : labels) {
      if (label == from) label = to;
    }
  }

  void Merge(int a, int b, bool device, bool target, bool scope) {
    const auto i = static_cast<size_t>(a);
    const auto j = static_cast<size_t>(b);
    if (device) Relabel(device_label_, device_label_[j], device_label_[i]);
    if (target) Relabel(target_label_, target_label_[j], target_label_[i]);
    if (scope) Relabel(scope_label_, scope_label_[j], scope_label_[i]);
  }

  VirtualDevice Of(int tensor) const {
    const auto i = static_cast<size_t>(tensor);
    return {type_[static_cast<size_t>(device_label_[i])], id_[static_cast<size_t>(device_label_[i])],
            target_[static_cast<size_t>(target_label_[i])], scope_[static_cast<size_t>(scope_label_[i])]};
  }

  void Store(int tensor, const VirtualDevice& device) {
    const auto i = static_cast<size_t>(tensor);
    type_[static_cast<size_t>(device_label_[i])] = device.device_type;
    id_[static_cast<size_t>(device_label_[i])] = device.virtual_device_id;
    target_[static_cast<size_t>(target_label_[i])] = device.target;
    scope_[static_cast<size_t>(scope_label_[i])] = device.memory_scope;
  }

  void State(const Statement& statement) {
    VirtualDevice stated = statement.device;
    if (stated.target && !stated.virtual_device_id) {
      std::vector<int64_t> ids;
      for (const ListedDevice& device : configuration_.devices()) {
        if (device.Has(*stated.target)) ids.push_back(device.id);
      }
      if (ids.size() == 1) stated.virtual_device_id = ids[0];
    }
    const JoinedDevice joined = Join(Of(statement.tensor), stated);
    if (joined.conflict) {
      plan_.error_kinds.insert("conflict");
    } else {
      Store(statement.tensor, joined.device);
    }
  }

  void Cross(int a, int b) {
    VirtualDevice one = Of(a);
    VirtualDevice two = Of(b);
    const VirtualDevice one_device{one.device_type, one.virtual_device_id, std::nullopt, ""};
    const VirtualDevice two_device{two.device_type, two.virtual_device_id, std::nullopt, ""};
    const JoinedDevice joined = Join(one_device, two_device);
    if (joined.conflict) return;
    Merge(a, b, true, false, false);
    one.device_type = joined.device.device_type;
    one.virtual_device_id = joined.device.virtual_device_id;
    Store(a, one);
    CrossScopes(a, b);
  }

  void CrossScopes(int a, int b) {
    VirtualDevice one = Of(a);
    const VirtualDevice two = Of(b);
    if (!one.memory_scope.empty() && !two.memory_scope.empty() && one.memory_scope != two.memory_scope) return;
    Merge(a, b, false, false, true);
    if (one.memory_scope.empty()) one.memory_scope = two.memory_scope;
    Store(a, one);
  }

  void Defaults() {
    const int count = static_cast<int>(device_label_.size());
    std::set<int> at_the_host;
    std::vector<VirtualDevice> before;
    for (int tensor = 0; tensor < count; ++tensor) before.push_back(Of(tensor));
    for (int tensor = 0; tensor < count; ++tensor) {
      const int label = device_label_[static_cast<size_t>(tensor)];
      bool scalars = true;
      bool operator_result = false;
      bool read = false;
      for (size_t other = 0; other < device_label_.size(); ++other) {
        if (device_label_[other] != label) continue;
        scalars = scalars && scalar_[other];
        operator_result = operator_result || operator_result_[other];
        read = read || host_reads_.contains(static_cast<int>(other));
      }
      VirtualDevice known = before[static_cast<size_t>(tensor)];
      const bool host = !known.device_type && read && (scalars || !operator_result);
      if (host) at_the_host.insert(tensor);
      const VirtualDevice filled = Default(known.Place(), host ? configuration_.host() : configuration_.default_device());
      known.device_type = filled.device_type;
      known.virtual_device_id = filled.virtual_device_id;
      if (!known.virtual_device_id) {
        for (const ListedDevice& device : configuration_.devices()) {
          if (device.type == *known.device_type && (!known.virtual_device_id || device.id < *known.virtual_device_id))
            known.virtual_device_id = device.id;
        }
      }
      known.memory_scope = filled.memory_scope;
      Store(tensor, known);
      const ListedDevice* listed = known.virtual_device_id ? configuration_.Find(known) : nullptr;
      if (!listed) plan_.error_kinds.insert("unknown-device");
      if (listed && known.target && !listed->Has(*known.target)) plan_.error_kinds.insert("unknown-target");
    }
  }

  void JoinOpen(int a, int b) {
    const VirtualDevice one = Of(a);
    const VirtualDevice two = Of(b);
    if (one.device_type == two.device_type && one.virtual_device_id == two.virtual_device_id) CrossScopes(a, b);
  }

  void JoinScopes() {
    for (const Use& use : uses_) {
      if (use.place < 0) continue;
      JoinOpen(TensorOf(use.leaf), use.place);
      for (auto& [copy, from, to] : copies_) {
        if (copy != use.user) continue;
        Tree made = to;
        std::vector<int> tensors;
        Leaves(made, [&](Tree& leaf, bool) { tensors.push_back(leaf.tensor); });
        Tree source = from;
        size_t at = 0;
        Leaves(source, [&](Tree& leaf, bool) {
          const int target = tensors[at++];
          if (leaf.tensor == use.place && leaf.maker == use.leaf.maker && leaf.field == use.leaf.field) JoinOpen(use.place, target);
        });
      }
    }
  }

  bool IsGone(const ExprNode* expr) {
    for (auto& [copy, from, to] : copies_) {
      if (copy != expr) continue;
      std::vector<std::string> a;
      std::vector<std::string> b;
      Tree source = from;
      Tree made = to;
      Leaves(source, [&](Tree& leaf, bool) { a.push_back(Of(leaf.tensor).Place().ToString()); });
      Leaves(made, [&](Tree& leaf, bool) { b.push_back(Of(leaf.tensor).Place().ToString()); });
      return a == b;
    }
    return false;
  }

  /// The tensor behind device_copies that are gone.
  Tree Behind(Tree leaf) {
    while (leaf.maker && IsGone(leaf.maker)) {
      for (auto& [copy, from, to] : copies_) {
        if (copy != leaf.maker) continue;
        std::vector<Tree> leaves;
        Tree source = from;
        Leaves(source, [&](Tree& part, bool) { leaves.push_back(part); });
        leaf = leaves[leaf.field];
        break;
      }
    }
    return leaf;
  }

  void FindCopies() {
    for (const Use& use : uses_) {
      const Tree made = Behind(use.leaf);
      if (IsConstant(made) || IsGone(use.user)) continue;
      const VirtualDevice to = use.place < 0 ? configuration_.host() : Of(use.place).Place();
      if (Join(Of(TensorOf(made)).Place(), to).conflict) plan_.copies[{made.maker, made.field, to.ToString()}].insert(use.user);
    }
  }

  void Report(const ExprNode* expr, Tree tree) {
    if (tree.is_function) return;
    std::vector<std::string>& devices = plan_.devices[expr];
    Leaves(tree, [&](Tree& leaf, bool in_function) {
      VirtualDevice device = Of(in_function || !leaf.maker ? leaf.tensor : TensorOf(Behind(leaf)));
      if (device.target && SameTarget(*device.target, configuration_.Find(device)->targets[0])) device.target.reset();
      devices.push_back(device.ToString());
    });
  }

  struct CopyOf {
    const ExprNode* copy;
    Tree from;
    Tree to;
  };

  const IRModule& module_;
  const DeviceConfiguration& configuration_;
  NaivePlan plan_;
  std::map<const ExprNode*, Tree> values_;
  std::set<const ExprNode*> visited_;
  std::map<const ExprNode*, Tree> signatures_;
  std::map<const ExprNode*, Expr> lets_;
  std::set<const ExprNode*> constants_;
  std::set<const ExprNode*> shapes_;
  std::set<const ExprNode*> fixed_;
  std::vector<std::pair<int, int>> exact_;
  std::vector<std::pair<int, int>> one_device_;
  std::vector<std::pair<int, int>> crossings_;
  std::vector<std::pair<int, int>> late_;
  std::vector<Statement> statements_;
  std::vector<Use> uses_;
  std::vector<CopyOf> copies_;
  std::set<int> host_reads_;
  std::vector<int> device_label_;
  std::vector<int> target_label_;
  std::vector<int> scope_label_;
  std::vector<std::optional<DeviceKind>> type_;
  std::vector<std::optional<int64_t>> id_;
  std::vector<std::optional<Target>> target_;
  std::vector<std::string> scope_;
  std::vector<bool> scalar_;
  std::vector<bool> operator_result_;
};

}  // namespace

NaivePlan PlanNaively(const IRModule& module, const DeviceConfiguration& configuration) { return Naive(module, configuration).Run(); }

}  // namespace collage
