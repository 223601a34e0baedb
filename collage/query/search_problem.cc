#include "collage/query/search_problem.h"

#include <algorithm>
#include <unordered_map>

namespace collage {
namespace {

/// Costs are whole picoseconds, so prices without a unit are scaled to lie far from both ends of what they can hold.
constexpr double kLargestTotal = 1e5;

double ScaleOf(const std::vector<std::optional<double>>& prices, double penalty, size_t nodes) {
  double largest = penalty;
  for (const std::optional<double>& price : prices) largest = std::max(largest, price.value_or(0) + penalty);
  const double total = largest * static_cast<double>(nodes + 1);
  return total > kLargestTotal ? kLargestTotal / total : 1;
}

std::string Describe(const NamedFunction& function, PostDfsIndex node) {
  const OpDef* op = CalledOp(function.graph()[node].expr);
  const std::string& name = function.NameOf(node);
  return (op ? op->name : "an expression") + (name.empty() ? "" : " (" + name + ")");
}

Error Uncovered(const NamedFunction& function, const SearchProblem& problem, const std::vector<SpecPointer>& specs,
                const Error& otherwise) {
  IndexSet covered;
  for (const SearchCandidate& candidate : problem.candidates) {
    if (candidate.variants[0].cost.IsKnown()) covered |= candidate.inside;
  }
  std::string rules;
  for (const SpecPointer& spec : specs) rules += (rules.empty() ? "" : ", ") + spec->name;
  for (PostDfsIndex node = 0; node < function.graph().size(); ++node) {
    if (covered.Contains(node)) continue;
    return Error{"no valid candidate of the rules (" + rules + ") covers " + Describe(function, node) + " in @" + function.name()};
  }
  return Error{"the candidates of the rules (" + rules + ") allow no cover of @" + function.name() + " as a whole: " + otherwise.message};
}

}  // namespace

Result<std::vector<ChosenCandidate>> CheapestCover(const NamedFunction& function, const std::vector<CandidatePartition>& candidates,
                                                   const std::vector<SpecPointer>& specs, const FixedPrices& prices, double penalty) {
  const DataflowGraph& graph = function.graph();
  SearchProblem problem;
  problem.node_count = graph.size();
  problem.backend_count = specs.size() + 1;
  for (PostDfsIndex node = 0; node < graph.size(); ++node) problem.tensors.push_back({node, graph[node].outputs.ToVector()});
  std::vector<std::optional<double>> price_of;
  for (const CandidatePartition& candidate : candidates) {
    // What breaks a condition that no rule may lift can be no function, so it has no price.
    const bool possible = candidate.sub_graph.IsValid(graph, {.allow_taps = true});
    price_of.push_back(possible ? prices.Of(candidate.spec->name, candidate.sub_graph.operator_count()) : std::nullopt);
  }
  const double scale = ScaleOf(price_of, penalty, graph.size());
  std::unordered_map<const PartitionSpec*, size_t> position;
  for (size_t i = 0; i < specs.size(); ++i) position.emplace(specs[i].get(), i);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Cost cost = price_of[i] ? Cost::Seconds((*price_of[i] + penalty) * scale) : Cost::Invalid();
    problem.candidates.push_back({candidates[i].sub_graph.inside(), position.at(candidates[i].spec.get()), {}, {}, {{cost, {}, {}}}, true});
  }
  for (PostDfsIndex node = 0; node < graph.size(); ++node) {
    if (CalledOp(graph[node].expr)) continue;
    problem.candidates.push_back({IndexSet({node}), specs.size(), {}, {}, {{Cost(), {}, {}}}, false});
  }
  const Result<SearchResult> found = SearchDijkstra(problem);
  if (!found) return Fail(Uncovered(function, problem, specs, found.error()));
  std::vector<ChosenCandidate> chosen;
  for (const SearchChoice& choice : found->choices) {
    if (choice.candidate >= candidates.size()) continue;
    chosen.push_back({candidates[choice.candidate].sub_graph, problem.candidates[choice.candidate].backend, *price_of[choice.candidate]});
  }
  return chosen;
}

}  // namespace collage
