#include "collage/driver/whole_model.h"

#include <algorithm>
#include <optional>

#include "collage/backend/onnx_variants.h"
#include "collage/ir/visit.h"
#include "collage/onnx/original.h"

namespace collage {
namespace {

/// All that is computed; what binds the results together is left to the host. Nothing where that is more than one block.
std::optional<IndexSet> AllComputed(const DataflowGraph& graph) {
  const Expr& result = graph.function()->As<Function>()->body;
  IndexSet inside;
  bool computes = false;
  for (PostDfsIndex node = 0; node + 1 < graph.size(); ++node) {
    const Expr& expr = graph[node].expr;
    if (graph[node].Is<Var>() || graph[node].Is<Constant>() || (graph[node].Is<Tuple>() && expr == result)) continue;
    const bool is_plain = CalledOp(expr) || graph[node].Is<Tuple>() || graph[node].Is<TupleGetItem>();
    if (!is_plain || graph[node].block != 0) return std::nullopt;
    computes = computes || CalledOp(expr);
    inside.Add(node);
  }
  return computes ? std::optional(std::move(inside)) : std::nullopt;
}

bool TakesRegions(const Placement& placement, const PartitionSpec& spec) {
  return std::any_of(placement.targets.begin(), placement.targets.end(), [&](const PlacementTarget& target) {
    return !target.is_fallback && target.backend->Name() == spec.name && target.rules.style == BackendRules::Style::kPredicate;
  });
}

/// Where each of the tensors stands in the list.
Result<std::vector<size_t>> PositionsIn(const std::vector<TensorSource>& list, const std::vector<TensorSource>& tensors) {
  std::vector<size_t> positions;
  for (const TensorSource& tensor : tensors) {
    const auto at = std::find(list.begin(), list.end(), tensor);
    if (at == list.end()) return Fail("it takes or gives a tensor that is no input or output of the model");
    positions.push_back(static_cast<size_t>(at - list.begin()));
  }
  return positions;
}

}  // namespace

std::vector<CandidatePartition> WholeModels(const Placement& placement, const std::vector<SpecPointer>& specs) {
  std::vector<CandidatePartition> found;
  std::optional<IndexSet> all = placement.original ? AllComputed(*placement.graph) : std::nullopt;
  if (!all) return found;
  const SubGraph whole(*placement.graph, std::move(*all));
  if (!whole.IsValid(*placement.graph, {.allow_taps = true})) return found;
  for (const SpecPointer& spec : specs) {
    if (!TakesRegions(placement, *spec)) continue;
    found.push_back({whole.WithAttributes(*placement.graph, {{"Primitive", 1}, {"Compiler", spec->name}}), spec});
  }
  return found;
}

Status CarryModel(const Placement& placement, PricedCandidate& candidate) {
  const DataflowGraph& graph = *placement.graph;
  const Function& function = *graph.function()->As<Function>();
  if (function.parameters.size() != placement.original->input_names.size()) return Fail("its function has other parameters than the model");
  std::vector<TensorSource> inputs;
  for (const Expr& parameter : function.parameters) inputs.push_back({graph.Find(parameter), 0});
  const std::vector<TensorSource> outputs = ResolveTensors(graph, graph.IndexOf(function.body));
  ExtractedFunction& extracted = candidate.extracted;
  const Expr carrier =
      COLLAGE_TRY(CarryOriginal(*placement.original, COLLAGE_TRY(PositionsIn(inputs, extracted.inputs)),
                                COLLAGE_TRY(PositionsIn(outputs, extracted.outputs)), extracted.function->As<Function>()->attributes));
  if (!(carrier->type() == extracted.function->type())) return Fail("its function has another type than the model");
  extracted.function = carrier;
  return {};
}

Result<IRModule> WithCarriedModels(const Placement& placement, const std::vector<SearchChoice>& choices, IRModule module) {
  for (const SearchChoice& choice : choices) {
    const PricedCandidate& candidate = placement.candidates[choice.candidate];
    if (!candidate.is_partition || !IsOriginal(candidate.variants[choice.variant].variant.name)) continue;
    // It holds all calls, so there is one such partition.
    const Function& carrier = *candidate.extracted.function->As<Function>();
    const auto is_its = [&](const Expr& expr) {
      const Function* function = expr->As<Function>();
      const AttributeValue* variant = function ? function->attributes.Find("Variant") : nullptr;
      return variant && variant->AsString() && IsOriginal(*variant->AsString());
    };
    const Rewriter replace = [&](const Expr&, const Expr& expr) -> Result<Expr> {
      if (!is_its(expr)) return expr;
      return MakeFunction(carrier.parameters, carrier.body, expr->As<Function>()->attributes);
    };
    module.Set("main", COLLAGE_TRY(Rewrite(module.MainExpr(), replace, [&](const Expr& expr) { return !is_its(expr); })));
  }
  return module;
}

}  // namespace collage
