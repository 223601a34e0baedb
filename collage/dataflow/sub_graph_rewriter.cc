#include "collage/dataflow/sub_graph_rewriter.h"

#include <algorithm>

#include "collage/dataflow/float_lets.h"
#include "collage/support/check.h"

namespace collage {
namespace {

std::string Describe(const DataflowGraph& graph, PostDfsIndex node) {
  const OpDef* op = CalledOp(graph[node].expr);
  return "node " + std::to_string(node) + (op ? " (" + op->name + ")" : "");
}

/// Constants, names and function literals are copied to wherever they are used, so no partition owns them.
bool BelongsToPartition(const Expr& expr) {
  return !expr->As<Constant>() && !expr->As<Var>() && !expr->As<GlobalVar>() && !expr->As<Function>();
}

Result<Expr> Project(Expr value, size_t field) {
  while (const TupleType* tuple = value->type().AsTuple()) {
    const ValuePlace place = FindValue(*tuple, field);
    value = COLLAGE_TRY(MakeTupleGetItem(value, place.field));
    field = place.value;
  }
  return value;
}

Result<ExtractedFunction> ExtractLayer(const DataflowGraph& graph, const SubGraph& sub_graph, const Attributes& attributes,
                                       const ExtractionOptions& options) {
  ExtractedFunction extracted;
  extracted.outputs = OutputTensors(graph, sub_graph);
  if (extracted.outputs.empty()) {  // nothing but names and constants inside: give the exits as they are
    for (const PostDfsIndex node : sub_graph.exit()) {
      const size_t count = ValueCount(graph[node].expr->type());
      for (size_t i = 0; i < count; ++i) extracted.outputs.push_back({node, i});
    }
  }
  SubGraphRewriter rewriter(graph, &sub_graph.inside(), sub_graph.nested(), options);
  std::vector<PostDfsIndex> roots;
  for (const TensorSource& output : extracted.outputs) roots.push_back(output.node);
  COLLAGE_TRY_STATUS(rewriter.Prepare(roots));
  Expr body = rewriter.CallThatGives(extracted.outputs);
  if (!body && !roots.empty() && graph[roots[0]].expr->type().AsTuple()) {
    bool whole = extracted.outputs.size() == graph[roots[0]].expr->type().AsTuple()->fields.size();
    for (size_t i = 0; i < extracted.outputs.size(); ++i) whole = whole && extracted.outputs[i] == TensorSource{roots[0], i};
    if (whole) body = COLLAGE_TRY(rewriter.Value(roots[0]));
  }
  if (!body) {
    std::vector<Expr> results;
    for (const TensorSource& output : extracted.outputs) results.push_back(COLLAGE_TRY(rewriter.Tensor(output)));
    body = results.size() == 1 ? results[0] : MakeTuple(std::move(results));
  }
  extracted.inputs = rewriter.inputs();
  extracted.function = COLLAGE_TRY(MakeFunction(rewriter.parameters(), body, attributes));
  return extracted;
}

}  // namespace

Result<ExtractedFunction> ExtractFunction(const DataflowGraph& graph, const SubGraph& sub_graph, const ExtractionOptions& options) {
  const std::span<const NestedSubGraph> nested = sub_graph.nested();
  if (nested.size() == 1 && nested[0].sub_graph.inside() == sub_graph.inside()) {
    return ExtractLayer(graph, nested[0].sub_graph, nested[0].attributes, options);
  }
  return ExtractLayer(graph, sub_graph, {}, options);
}

Result<Expr> RewriteFunction(const DataflowGraph& graph, std::span<const NestedSubGraph> partitions, const ExtractionOptions& options) {
  SubGraphRewriter rewriter(graph, nullptr, partitions, options);
  const PostDfsIndex root = graph.size() - 1;
  COLLAGE_TRY_STATUS(rewriter.Prepare({root}));
  return FloatLets(COLLAGE_TRY(rewriter.Value(root)));
}

std::vector<TensorSource> OutputTensors(const DataflowGraph& graph, const SubGraph& sub_graph) {
  const IndexSet& inside = sub_graph.inside();
  std::vector<TensorSource> outputs;
  std::map<TensorSource, bool> seen;
  const auto add = [&](PostDfsIndex node) {
    for (const TensorSource& tensor : ResolveTensors(graph, node, &inside)) {
      const bool given = inside.Contains(tensor.node) && BelongsToPartition(graph[tensor.node].expr);
      if (given && seen.emplace(tensor, true).second) outputs.push_back(tensor);
    }
  };
  for (const PostDfsIndex node : sub_graph.exit()) {
    const NodeIndices& users = graph[node].outputs;
    const bool only_fields = graph[node].expr->type().AsTuple() && !graph[node].external &&
                             std::all_of(users.begin(), users.end(),
                                         [&](PostDfsIndex user) { return inside.Contains(user) || graph[user].expr->As<TupleGetItem>(); });
    if (!only_fields) {
      add(node);
      continue;
    }
    for (const PostDfsIndex user : users) {
      if (!inside.Contains(user)) add(user);
    }
  }
  std::sort(outputs.begin(), outputs.end());
  return outputs;
}

SubGraphRewriter::SubGraphRewriter(const DataflowGraph& graph, const IndexSet* scope, std::span<const NestedSubGraph> partitions,
                                   const ExtractionOptions& options)
    : graph_(graph), scope_(scope), options_(options) {
  for (const NestedSubGraph& nested : partitions) partitions_.push_back({&nested, {}, nullptr});
  if (scope_) IncludeFunctionLiterals();
}

void SubGraphRewriter::IncludeFunctionLiterals() {
  struct Item {
    PostDfsIndex node;
    size_t block;  // of the body of the outermost literal
  };
  std::vector<Item> stack;
  const auto include = [&](PostDfsIndex node, size_t block) {
    if (literals_.Contains(node)) return;
    literals_.Add(node);
    stack.push_back({node, block});
  };
  const auto include_literal = [&](PostDfsIndex node) {
    const Expr& expr = graph_[node].expr;
    if (!expr->As<Function>() || node + 1 == graph_.size()) return;
    if (IsAtomicFunction(expr)) {
      literals_.Add(node);
    } else {
      include(node, graph_.BodyBlock(node));
    }
  };
  scope_->ForEach([&](PostDfsIndex node) {
    include_literal(node);
    for (const PostDfsIndex input : graph_[node].inputs) include_literal(input);
  });
  while (!stack.empty()) {
    const Item item = stack.back();
    stack.pop_back();
    for (const Expr* child : NodeChildren(graph_[item.node].expr)) {
      const PostDfsIndex index = graph_.IndexOf(*child);
      if (graph_.BlockEncloses(item.block, graph_[index].block)) include(index, item.block);
    }
  }
}

Status SubGraphRewriter::ExtractPartitions() {
  for (size_t i = 0; i < partitions_.size(); ++i) {
    Partition& partition = partitions_[i];
    PostDfsIndex shared = DataflowGraph::kNone;
    partition.nested->sub_graph.inside().ForEach([&](PostDfsIndex node) {
      if (!BelongsToPartition(graph_[node].expr)) return;
      if (!partition_of_.emplace(node, i).second) shared = node;
    });
    if (shared != DataflowGraph::kNone) return Fail("two partitions share " + Describe(graph_, shared) + ", expected disjoint ones");
    partition.extracted = COLLAGE_TRY(ExtractLayer(graph_, partition.nested->sub_graph, partition.nested->attributes, options_));
  }
  return {};
}

bool SubGraphRewriter::InScope(PostDfsIndex node) const { return !scope_ || scope_->Contains(node) || literals_.Contains(node); }

size_t SubGraphRewriter::PartitionOf(PostDfsIndex node) const {
  const auto at = partition_of_.find(node);
  return at == partition_of_.end() ? kNoPartition : at->second;
}

bool SubGraphRewriter::StandsForItself(PostDfsIndex node) const {
  const Expr& expr = graph_[node].expr;
  if (expr->As<GlobalVar>()) return true;
  if (expr->As<Constant>()) return InScope(node) || options_.bind_constants || expr->type().AsTensor()->shape.empty();
  if (expr->As<Function>()) return InScope(node) && node + 1 != graph_.size() && IsAtomicFunction(expr);
  if (!expr->As<Var>()) return false;
  if (!scope_ || literals_.Contains(node)) return true;
  const NodeIndices& users = graph_[node].outputs;
  return scope_->Contains(node) && std::any_of(users.begin(), users.end(), [&](PostDfsIndex user) {
           const Let* let = graph_[user].expr->As<Let>();
           return let && let->variable == expr && scope_->Contains(user);
         });
}

Expr SubGraphRewriter::Itself(PostDfsIndex node) {
  const Expr& expr = graph_[node].expr;
  const Var* variable = expr->As<Var>();
  if (!variable || !literals_.Contains(node)) return expr;
  Expr& fresh = fresh_variables_[node];
  if (!fresh) fresh = MakeVar(variable->name, expr->type());
  return fresh;
}

bool SubGraphRewriter::IsBuilt(PostDfsIndex node) const {
  return InScope(node) && PartitionOf(node) == kNoPartition && !graph_[node].expr->As<Var>() && !StandsForItself(node);
}

bool SubGraphRewriter::IsProjectionOfPartition(PostDfsIndex node) const {
  const TupleGetItem* item = graph_[node].expr->As<TupleGetItem>();
  return item && !IsBuilt(graph_.IndexOf(item->tuple));
}

TensorSource SubGraphRewriter::Resolve(TensorSource tensor) const {
  // A partition looks through variables that are bound inside it; so does the scope.
  while (true) {
    const size_t partition = PartitionOf(tensor.node);
    const IndexSet* inside = partition != kNoPartition ? &partitions_[partition].nested->sub_graph.inside() : scope_;
    if (StandsForItself(tensor.node)) return tensor;
    const TensorSource next = ResolveTensor(graph_, tensor, inside);
    if (next == tensor || PartitionOf(next.node) == partition) return next;
    tensor = next;
  }
}

size_t SubGraphRewriter::UnitOf(PostDfsIndex node) const {
  const size_t partition = PartitionOf(node);
  return partition == kNoPartition ? node : graph_.size() + partition;
}

void SubGraphRewriter::AddUnitBehind(TensorSource tensor, std::vector<size_t>& units) const {
  const PostDfsIndex source = Resolve(tensor).node;
  if (PartitionOf(source) != kNoPartition || IsBuilt(source)) units.push_back(UnitOf(source));
}

void SubGraphRewriter::AddUnitsOf(PostDfsIndex node, std::vector<size_t>& units) const {
  if (IsBuilt(node)) {
    units.push_back(node);
    return;
  }
  if (StandsForItself(node)) return;
  const size_t count = ValueCount(graph_[node].expr->type());
  for (size_t i = 0; i < count; ++i) AddUnitBehind({node, i}, units);
}

std::vector<size_t> SubGraphRewriter::UnitsNeededBy(size_t unit) const {
  std::vector<size_t> units;
  if (unit >= graph_.size()) {
    for (const TensorSource& input : partitions_[unit - graph_.size()].extracted.inputs) AddUnitBehind(input, units);
  } else if (IsProjectionOfPartition(unit)) {
    const size_t count = ValueCount(graph_[unit].expr->type());
    for (size_t i = 0; i < count; ++i) AddUnitBehind({unit, i}, units);
  } else if (unit + 1 == graph_.size()) {
    AddUnitsOf(graph_.IndexOf(graph_.function()->As<Function>()->body), units);
  } else {
    for (const Expr* child : NodeChildren(graph_[unit].expr)) AddUnitsOf(graph_.IndexOf(*child), units);
  }
  return units;
}

Status SubGraphRewriter::Prepare(const std::vector<PostDfsIndex>& roots) {
  COLLAGE_TRY_STATUS(ExtractPartitions());
  struct Item {
    size_t unit;
    std::vector<size_t> needs;
    size_t next;
  };
  std::unordered_map<size_t, State> state;
  std::vector<Item> stack;
  const auto open = [&](size_t unit) -> Status {
    const auto [at, is_new] = state.emplace(unit, State::kOpen);
    if (is_new) {
      stack.push_back({unit, UnitsNeededBy(unit), 0});
    } else if (at->second == State::kOpen) {
      return Fail("the partitions depend on each other in a cycle through " +
                  Describe(graph_, unit < graph_.size() ? unit : partitions_[unit - graph_.size()].nested->sub_graph.inside().First()));
    }
    return {};
  };
  std::vector<size_t> units;
  for (const PostDfsIndex root : roots) AddUnitsOf(root, units);
  for (const size_t unit : units) {
    if (!state.contains(unit)) COLLAGE_TRY_STATUS(open(unit));
    while (!stack.empty()) {
      Item& item = stack.back();
      if (item.next < item.needs.size()) {
        COLLAGE_TRY_STATUS(open(item.needs[item.next++]));
        continue;
      }
      COLLAGE_TRY_STATUS(Build(item.unit));
      state[item.unit] = State::kDone;
      stack.pop_back();
    }
  }
  return {};
}

Status SubGraphRewriter::Build(size_t unit) {
  if (unit >= graph_.size()) return BuildPartition(partitions_[unit - graph_.size()]);
  values_[unit] = COLLAGE_TRY(BuildNode(unit));
  return {};
}

Result<Expr> SubGraphRewriter::BuildNode(PostDfsIndex node) {
  const Expr& expr = graph_[node].expr;
  if (IsProjectionOfPartition(node)) {
    size_t field = 0;
    return Assemble(expr->type(), node, field);
  }
  if (const Let* let = expr->As<Let>(); let && scope_ && !InScope(graph_.IndexOf(let->variable))) {
    // The variable is bound outside and comes in by its value, so that only the body is left of the let.
    return Value(graph_.IndexOf(let->body));
  }
  std::vector<Expr> children = Children(expr);
  for (Expr& child : children) {
    if (child->As<Op>()) continue;
    child = COLLAGE_TRY(Value(graph_.IndexOf(child)));
  }
  return WithChildren(expr, std::move(children));
}

Status SubGraphRewriter::BuildPartition(Partition& partition) {
  std::vector<Expr> arguments;
  for (const TensorSource& input : partition.extracted.inputs) arguments.push_back(COLLAGE_TRY(Tensor(input)));
  std::vector<Origin> origins;
  partition.nested->sub_graph.inside().ForEach([&](PostDfsIndex node) {
    if (graph_[node].expr->As<Call>()) origins.push_back(graph_[node].expr->origin());
  });
  partition.call = COLLAGE_TRY(MakeCall(partition.extracted.function, std::move(arguments), {}, Origin::Union(origins)));
  const std::vector<TensorSource>& outputs = partition.extracted.outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    tensors_[outputs[i]] = outputs.size() == 1 ? partition.call : COLLAGE_TRY(MakeTupleGetItem(partition.call, i));
  }
  return {};
}

Expr SubGraphRewriter::CallThatGives(const std::vector<TensorSource>& tensors) const {
  for (const Partition& partition : partitions_) {
    if (partition.call && partition.extracted.outputs == tensors) return partition.call;
  }
  return nullptr;
}

Result<Expr> SubGraphRewriter::Value(PostDfsIndex node) {
  if (StandsForItself(node)) return Itself(node);
  if (const auto at = values_.find(node); at != values_.end()) return at->second;
  size_t field = 0;
  return Assemble(graph_[node].expr->type(), node, field);
}

Result<Expr> SubGraphRewriter::Assemble(const Type& type, PostDfsIndex node, size_t& field) {
  const TupleType* tuple = type.AsTuple();
  if (!tuple) return Tensor({node, field++});
  std::vector<Expr> fields;
  for (const Type& inner : tuple->fields) fields.push_back(COLLAGE_TRY(Assemble(inner, node, field)));
  return MakeTuple(std::move(fields));
}

Result<Expr> SubGraphRewriter::Tensor(TensorSource source) {
  if (const auto at = values_.find(source.node); at == values_.end() || !at->second->As<collage::Tuple>()) source = Resolve(source);
  if (const auto at = tensors_.find(source); at != tensors_.end()) return at->second;
  const PostDfsIndex node = source.node;
  if (const auto at = values_.find(node); at != values_.end() || StandsForItself(node)) {
    Expr tensor = COLLAGE_TRY(Project(at != values_.end() ? at->second : Itself(node), source.field));
    return tensors_[source] = tensor;
  }
  if (PartitionOf(node) != kNoPartition || IsBuilt(node)) {
    return Fail("a tensor of " + Describe(graph_, node) + " is used before it is computed");
  }
  return tensors_[source] = Parameter(source);
}

Expr SubGraphRewriter::Parameter(TensorSource source) {
  inputs_.push_back(source);
  const Type* type = &graph_[source.node].expr->type();
  for (size_t value = source.field; const TupleType* tuple = type->AsTuple();) {
    const ValuePlace place = FindValue(*tuple, value);
    value = place.value;
    type = &tuple->fields[place.field];
  }
  parameters_.push_back(MakeVar("FunctionVar_" + std::to_string(parameters_.size()), *type));
  return parameters_.back();
}

}  // namespace collage
