#include "collage/ir/print.h"

#include "collage/ir/lexer.h"
#include "collage/ir/literal.h"
#include "collage/ir/scope_tree.h"
#include "collage/support/name_supply.h"

namespace collage {
namespace {

std::string Cleaned(const std::string& name, bool global) {
  if (global ? IsGlobalName(name) : IsLocalName(name) && (name[0] < '0' || name[0] > '9')) return name;
  std::string cleaned = name.empty() || (name[0] >= '0' && name[0] <= '9') ? "v" : "";
  for (char c : name) cleaned += IsLocalName(std::string_view(&c, 1)) ? c : '_';
  return cleaned;
}

std::string TableTypeOf(const Tensor& tensor) {
  return "Tensor[" + ToString(tensor.shape()) + ", " + std::string(Name(tensor.dtype())) + "]";
}

// Names and constants of one module.
class Names {
 public:
  explicit Names(PrintedText& out) : out_(out) {}

  void StartFunction() {
    supply_ = NameSupply();
    numbers_ = 0;
  }
  void Number(const Expr& expr) { out_.names[expr.get()] = "%" + std::to_string(numbers_++); }
  void ReserveGlobal(const std::string& name) { globals_[name] = global_supply_.Fresh(Cleaned(name, true)); }
  std::string Global(const std::string& name) {
    if (!globals_.contains(name)) ReserveGlobal(name);
    return "@" + globals_.at(name);
  }

  std::string Of(const Expr& expr) {
    if (const Var* var = expr->As<Var>()) return OfVar(expr, *var);
    if (const GlobalVar* global = expr->As<GlobalVar>()) return Global(global->name);
    if (const Op* op = expr->As<Op>()) return op->def->name;
    if (const Constant* constant = expr->As<Constant>()) return OfConstant(expr, *constant);
    return out_.names.at(expr.get());
  }

 private:
  const std::string& OfVar(const Expr& expr, const Var& var) {
    std::string& name = out_.names[expr.get()];
    if (name.empty()) name = "%" + supply_.Fresh(Cleaned(var.name, false));
    return name;
  }

  std::string OfConstant(const Expr& expr, const Constant& constant) {
    if (std::optional<std::string> literal = LiteralOf(constant.value)) return *std::move(literal);
    const auto [at, inserted] = constants_.emplace(expr.get(), out_.constants.size());
    if (inserted) out_.constants.push_back(constant.value);
    return "meta[relay.Constant][" + std::to_string(at->second) + "] /*" + TableTypeOf(constant.value) + "*/";
  }

  PrintedText& out_;
  NameSupply supply_;
  NameSupply global_supply_;
  size_t numbers_ = 0;
  std::unordered_map<std::string, std::string> globals_;
  std::unordered_map<const ExprNode*, size_t> constants_;
};

// Prints one function. Work that remains lies on a stack of tasks, because scopes nest as deep as a program is long. A binding
// gets its number when its inside has been printed, so its name is filled into a chunk of text that stands before it.
class FunctionPrinter {
 public:
  FunctionPrinter(const Expr& root, Names& names) : root_(root), tree_(root), names_(names) {}

  /// The expression with the bindings that it needs before it.
  std::string PrintScope() {
    Push(Task::kScope, nullptr, 0, 0);
    return Run();
  }

  /// "(...) -> T { ... }" of a function of the module, which is the root.
  std::string PrintDefinition() {
    Define(root_, 0, "");
    return Run();
  }

 private:
  struct Task {
    enum Kind { kScope, kBinding, kEndBinding, kValue, kText } kind;
    const Expr* expr;
    size_t number;  // of the scope, or of the chunk that waits for a name
    size_t indent;
    std::string text;
  };

  std::string Run() {
    while (!tasks_.empty()) {
      const Task task = std::move(tasks_.back());
      tasks_.pop_back();
      Do(task);
    }
    std::string text;
    for (const std::string& chunk : chunks_) text += chunk;
    return text;
  }

  void Push(Task::Kind kind, const Expr* expr, size_t number, size_t indent) { tasks_.push_back({kind, expr, number, indent, {}}); }
  void PushText(std::string text) { tasks_.push_back({Task::kText, nullptr, 0, 0, std::move(text)}); }
  void Write(const std::string& text) { chunks_.back() += text; }
  static std::string Indentation(size_t indent) { return std::string(2 * indent, ' '); }

  void Do(const Task& task) {
    switch (task.kind) {
      case Task::kScope:
        return StartScope(task.number, task.indent);
      case Task::kBinding:
        Write(Indentation(task.indent));
        chunks_.resize(chunks_.size() + 2);  // one for the name, one for what follows it
        Push(Task::kEndBinding, task.expr, chunks_.size() - 2, 0);
        return Define(*task.expr, task.indent, "fn ");
      case Task::kEndBinding:
        names_.Number(*task.expr);
        chunks_[task.number] = names_.Of(*task.expr) + " = ";
        return Write(";\n");
      case Task::kValue:
        if (IsLeaf(*task.expr) || tree_.IsNumbered(*task.expr)) return Write(names_.Of(*task.expr));
        return Define(*task.expr, task.indent, "fn ");
      case Task::kText:
        return Write(task.text);
    }
  }

  void StartScope(size_t number, size_t indent) {
    const ScopeTree::Scope& scope = tree_.scope(number);
    const Expr& result = *scope.result;
    if (result->As<Let>() && !tree_.IsNumbered(result)) {
      PushLet(result, indent);
    } else {
      PushText("\n");
      Push(Task::kValue, &result, 0, indent);
      PushText(Indentation(indent));
    }
    for (size_t i = scope.bindings.size(); i-- > 0;) Push(Task::kBinding, scope.bindings[i], 0, indent);
  }

  // "let %x = value;" and what follows, to the end of the scope.
  void PushLet(const Expr& expr, size_t indent) {
    const Let& let = *expr->As<Let>();
    Push(Task::kScope, nullptr, tree_.OpenedBy(expr.get()), indent);
    PushText(";\n");
    Push(Task::kValue, &let.value, 0, indent);
    PushText(" = ");
    Push(Task::kValue, &let.variable, 0, 0);
    PushText(Indentation(indent) + "let ");
  }

  // An expression itself, not its name. What it uses has been printed before.
  void Define(const Expr& expr, size_t indent, const char* function_mark) {
    if (const Call* call = expr->As<Call>()) return WriteCall(*call);
    if (const Tuple* tuple = expr->As<Tuple>()) return WriteTuple(*tuple);
    if (const TupleGetItem* item = expr->As<TupleGetItem>()) return Write(names_.Of(item->tuple) + "." + std::to_string(item->index));
    if (const Function* function = expr->As<Function>()) return StartFunction(expr, *function, indent, function_mark);
    if (const If* branch = expr->As<If>()) return StartIf(expr, *branch, indent);
    if (!expr->As<Let>()) return Write(names_.Of(expr));
    Write("(\n");
    PushText(Indentation(indent) + ")");
    PushLet(expr, indent + 1);
  }

  void WriteCall(const Call& call) {
    std::string text = names_.Of(call.callee) + "(";
    const char* separator = "";
    for (const Expr& arg : call.args) {
      text += separator + names_.Of(arg);
      separator = ", ";
    }
    for (const auto& [name, value] : call.attributes.entries()) {
      text += separator + name + "=" + ToString(value);
      separator = ", ";
    }
    Write(text + ")");
  }

  void WriteTuple(const Tuple& tuple) {
    std::string text = "(";
    for (const Expr& field : tuple.fields) text += (text.size() > 1 ? ", " : "") + names_.Of(field);
    Write(text + (tuple.fields.size() == 1 ? ",)" : ")"));
  }

  void StartFunction(const Expr& expr, const Function& function, size_t indent, const char* mark) {
    std::string text = mark + std::string("(");
    const char* separator = "";
    for (const Expr& parameter : function.parameters) {
      const std::string& devices = parameter->As<Var>()->virtual_device;
      text += separator + names_.Of(parameter);
      if (!devices.empty()) text += " {virtual_device=" + ToString(AttributeValue(devices)) + "}";
      text += ": " + ToString(parameter->type());
      separator = ", ";
    }
    for (const auto& [name, value] : function.attributes.entries()) {
      text += separator + name + "=" + ToString(value);
      separator = ", ";
    }
    Write(text + ") -> " + ToString(function.result_type) + " {\n");
    PushText(Indentation(indent) + "}");
    Push(Task::kScope, nullptr, tree_.OpenedBy(expr.get()), indent + 1);
  }

  void StartIf(const Expr& expr, const If& branch, size_t indent) {
    const size_t then_scope = tree_.OpenedBy(expr.get());
    Write("if (" + names_.Of(branch.condition) + ") {\n");
    PushText(Indentation(indent) + "}");
    Push(Task::kScope, nullptr, then_scope + 1, indent + 1);
    PushText(Indentation(indent) + "} else {\n");
    Push(Task::kScope, nullptr, then_scope, indent + 1);
  }

  const Expr& root_;
  ScopeTree tree_;
  Names& names_;
  std::vector<Task> tasks_;
  std::vector<std::string> chunks_ = {""};
};

}  // namespace

PrintedText PrintModule(const IRModule& module) {
  PrintedText printed;
  Names names(printed);
  for (const auto& [name, function] : module.functions()) names.ReserveGlobal(name);
  for (const auto& [name, function] : module.functions()) {
    names.StartFunction();
    if (!printed.text.empty()) printed.text += "\n";
    printed.text += "def " + names.Global(name) + FunctionPrinter(function, names).PrintDefinition() + "\n";
  }
  return printed;
}

PrintedText PrintExpr(const Expr& expr) {
  PrintedText printed;
  Names names(printed);
  printed.text = FunctionPrinter(expr, names).PrintScope();
  return printed;
}

std::string Print(const IRModule& module) { return PrintModule(module).text; }
std::string Print(const Expr& expr) { return PrintExpr(expr).text; }

}  // namespace collage
