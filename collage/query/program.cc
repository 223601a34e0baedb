#include "collage/query/program.h"

#include <algorithm>
#include <unordered_set>

#include "collage/ir/verify.h"
#include "collage/op/table.h"
#include "collage/query/constants.h"

namespace collage {
namespace {

/// Where the text binds what is computed; variables and constants are not.
std::vector<DataflowGraph::Place> PlacesOf(const NamedFunction::Origin& origin) {
  std::vector<DataflowGraph::Place> places;
  for (const Binding& binding : origin.bindings) {
    const Expr& expr = binding.expr;
    if (expr->As<Var>() || expr->As<Constant>() || expr->As<GlobalVar>() || binding.block >= origin.blocks.size()) continue;
    const TextBlock& block = origin.blocks[binding.block];
    if (block.owner) places.push_back({expr.get(), block.owner, block.part});
  }
  return places;
}

}  // namespace

NamedFunction::NamedFunction(std::string name, const Expr& function, const Origin& origin)
    : name_(std::move(name)), graph_(function, PlacesOf(origin)), name_of_(graph_.size()) {
  Bind("@" + name_, graph_.size() - 1);
  for (PostDfsIndex node = 0; node < graph_.size(); ++node) {
    const Expr& expr = graph_[node].expr;
    if (const GlobalVar* global = expr->As<GlobalVar>()) Bind("@" + global->name, node);
    if (const auto at = origin.constants.find(expr.get()); at != origin.constants.end()) Bind("const:" + std::to_string(at->second), node);
  }
  for (const auto& [local, expr, block] : origin.bindings) {
    const auto preferred = origin.preferred.find(local);
    if (preferred == origin.preferred.end() || preferred->second != expr) continue;
    if (const PostDfsIndex node = graph_.Find(expr); node != DataflowGraph::kNone) Bind("%" + local, node);
  }
  // What another binding hides still goes by its name in answers, but cannot be asked for.
  for (const auto& [local, expr, block] : origin.bindings) {
    const PostDfsIndex node = graph_.Find(expr);
    if (node != DataflowGraph::kNone && name_of_[node].empty()) name_of_[node] = "%" + local;
  }
  NameLetValues();
}

void NamedFunction::Bind(const std::string& name, PostDfsIndex node) {
  if (name_of_[node].empty()) name_of_[node] = name;
  std::vector<PostDfsIndex>& nodes = nodes_of_[name];
  // The first binding wins; a function that calls itself is asked for, not its name.
  if (nodes.empty()) nodes.push_back(node);
}

void NamedFunction::NameLetValues() {
  for (PostDfsIndex node = 0; node < graph_.size(); ++node) {
    const Let* let = graph_[node].expr->As<Let>();
    if (!let) continue;
    const PostDfsIndex value = graph_.Find(let->value);
    const PostDfsIndex variable = graph_.Find(let->variable);
    if (value == DataflowGraph::kNone || variable == DataflowGraph::kNone || !name_of_[value].empty()) continue;
    const Constant* constant = let->value->As<Constant>();
    if (constant && constant->value.shape().empty()) continue;
    name_of_[value] = name_of_[variable];
    const auto at = nodes_of_.find(name_of_[variable]);
    if (at != nodes_of_.end() && at->second.front() == variable) at->second.push_back(value);
  }
}

Json NamedFunction::NamesOf(std::span<const PostDfsIndex> nodes) const {
  Json names = Json::array();
  std::unordered_set<std::string> seen;
  for (const PostDfsIndex node : nodes) {
    if (!name_of_[node].empty() && seen.insert(name_of_[node]).second) names.push_back(name_of_[node]);
  }
  return names;
}

Json NamedFunction::NamesOf(NodeList nodes) const {
  return NamesOf(std::span<const PostDfsIndex>(std::vector<PostDfsIndex>(nodes.begin(), nodes.end())));
}

Json NamedFunction::NamesOf(const IndexSet& nodes) const { return NamesOf(std::span<const PostDfsIndex>(nodes.ToVector())); }

Json NamedFunction::NamesOf(const std::vector<TensorSource>& tensors, const IndexSet& inside, bool projected_inside) const {
  std::vector<PostDfsIndex> nodes;
  for (const TensorSource& tensor : tensors) {
    const NodeIndices& users = graph_[tensor.node].outputs;
    const auto projection = std::find_if(users.begin(), users.end(), [&](PostDfsIndex user) {
      return graph_[user].expr->As<TupleGetItem>() && !name_of_[user].empty() && inside.Contains(user) == projected_inside &&
             ResolveTensor(graph_, {user, 0}) == tensor;
    });
    nodes.push_back(projection == users.end() ? tensor.node : *projection);
  }
  return NamesOf(std::span<const PostDfsIndex>(nodes));
}

Result<PostDfsIndex> NamedFunction::Node(const JsonReader& name) const {
  const std::string text = COLLAGE_TRY(name.String());
  const auto at = nodes_of_.find(text);
  if (at == nodes_of_.end())
    return name.Wrong("@" + name_ + " calls no expression \"" + text + "\", expected a name such as %0, const:0 or @main");
  return at->second.back();
}

Result<IndexSet> NamedFunction::Nodes(const JsonReader& list) const {
  IndexSet nodes;
  for (const JsonReader& name : COLLAGE_TRY(list.Items())) {
    COLLAGE_TRY(Node(name));
    for (const PostDfsIndex node : nodes_of_.at(*name.String())) nodes.Add(node);
  }
  return nodes;
}

Json NamedFunction::CallsOutside(const IndexSet& inside) const {
  std::vector<PostDfsIndex> calls;
  for (PostDfsIndex node = 0; node < graph_.size(); ++node) {
    if (graph_[node].expr->As<Call>() && !inside.Contains(node)) calls.push_back(node);
  }
  return NamesOf(std::span<const PostDfsIndex>(calls));
}

Json NamedFunction::Tagged(Json answer) const {
  if (!IsMain()) answer["function"] = "@" + name_;
  return answer;
}

Result<QueryProgram> QueryProgram::Read(const JsonReader& entry) {
  const JsonReader text = COLLAGE_TRY(entry.At("program"));
  const std::string source = COLLAGE_TRY(text.String());
  ParseOptions options;
  const ConstantTable constants = COLLAGE_TRY(ReadConstants(entry));
  options.constants = constants.tensors;
  options.missing_constant = [&](size_t index, const TensorType& type) -> Result<Tensor> {
    if (constants.is_given) return Fail("\"constants\" does not give constant " + std::to_string(index));
    return ZeroConstants()(index, type);
  };
  Result<ParsedModule> parsed = ParseModule(source, Operators(), options);
  if (!parsed) return text.Wrong(parsed.error().message);
  const Status verified = Verify(parsed->module);
  if (!verified) return text.Wrong(verified.error().message);
  QueryProgram program;
  for (const auto& [name, function] : parsed->module.functions()) {
    const NamedFunction::Origin origin{parsed->bindings.at(name), parsed->blocks, parsed->names.at(name), parsed->constants};
    program.functions_.push_back(std::make_unique<NamedFunction>(name, function, origin));
  }
  program.text_ = *std::move(parsed);
  return program;
}

Result<const NamedFunction*> QueryProgram::Named(const JsonReader& field) const {
  const std::string wanted = COLLAGE_TRY(field.String());
  for (const auto& function : functions_) {
    if ("@" + function->name() == wanted || function->name() == wanted) return function.get();
  }
  return field.Wrong("the program has no function \"" + wanted + "\"");
}

Result<std::vector<const NamedFunction*>> QueryProgram::FunctionsOf(const JsonReader& query) const {
  std::vector<const NamedFunction*> all;
  if (query.Has("function")) {
    all.push_back(COLLAGE_TRY(Named(COLLAGE_TRY(query.At("function")))));
  } else {
    for (const auto& function : functions_) all.push_back(function.get());
  }
  return all;
}

Result<const NamedFunction*> QueryProgram::FunctionOf(const JsonReader& query, const JsonReader& names) const {
  if (query.Has("function")) return Named(COLLAGE_TRY(query.At("function")));
  const auto has_all = [&](const NamedFunction& function) {
    const std::vector<JsonReader> items = names.ItemsOrSelf();
    return std::all_of(items.begin(), items.end(),
                       [&](const JsonReader& item) { return item.IsString() && function.Knows(*item.String()); });
  };
  const NamedFunction* main = nullptr;
  const NamedFunction* first = nullptr;
  for (const auto& function : functions_) {
    if (function->IsMain()) main = function.get();
    if (!first && has_all(*function)) first = function.get();
  }
  return first && !has_all(*main) ? first : main;
}

}  // namespace collage
