#include "collage/query/search_problem.h"

#include <algorithm>
#include <unordered_map>

#include "collage/candidate/rules.h"
#include "collage/pricing/problem.h"
#include "collage/search/shortest_path.h"

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

Error Uncovered(const NamedFunction& function, const std::vector<PricedCandidate>& candidates, const std::vector<SpecPointer>& specs,
                const Error& otherwise) {
  IndexSet covered;
  for (const PricedCandidate& candidate : candidates) {
    if (!candidate.variants.empty()) covered |= candidate.candidate.sub_graph.inside();
  }
  std::string rules;
  for (const SpecPointer& spec : specs) rules += (rules.empty() ? "" : ", ") + spec->name;
  for (PostDfsIndex node = 0; node < function.graph().size(); ++node) {
    if (covered.Contains(node)) continue;
    return Error{"no valid candidate of the rules (" + rules + ") covers " + Describe(function, node) + " in @" + function.name()};
  }
  return Error{"the candidates of the rules (" + rules + ") allow no cover of @" + function.name() + " as a whole: " + otherwise.message};
}

/// A price as the one way to run a candidate, on plain tensors.
PricedVariant PlainVariant(const ExtractedFunction& extracted, Cost cost) {
  PricedVariant variant;
  variant.variant.name = "default";
  variant.variant.inputs.resize(extracted.inputs.size());
  variant.variant.outputs.resize(extracted.outputs.size());
  variant.cost = cost;
  return variant;
}

/// What stays with the host, a node each, at no price.
Result<std::vector<PricedCandidate>> HostCandidates(const DataflowGraph& graph, size_t backend) {
  const auto spec = std::make_shared<const PartitionSpec>(PartitionSpec{"host", {}, HostRule(), true});
  std::vector<PricedCandidate> host;
  for (CandidatePartition& found : AllCandidates(graph, spec)) {
    PricedCandidate candidate{std::move(found), {}};
    candidate.backend = backend;
    candidate.is_partition = false;
    // Of what calls no operator the problem wants no tensors.
    if (graph[candidate.candidate.sub_graph.inside().First()].op) {
      candidate.extracted = COLLAGE_TRY(ExtractFunction(graph, candidate.candidate.sub_graph));
    }
    candidate.variants.push_back(PlainVariant(candidate.extracted, Cost()));
    host.push_back(std::move(candidate));
  }
  return host;
}

/// Whether the problem of a compile says all: that has no node for what is no call of an operator, and places nothing inside of an if or
/// a function literal. So two candidates that share a tuple, or whose tuples close a cycle, are told apart only over all nodes.
bool IsProblemOfACompile(const DataflowGraph& graph, const std::vector<PricedCandidate>& candidates) {
  for (PostDfsIndex node = 0; node < graph.size(); ++node) {
    if (graph[node].op && graph[node].block != 0) return false;
  }
  return std::all_of(candidates.begin(), candidates.end(), [&](const PricedCandidate& candidate) {
    const SubGraph& sub_graph = candidate.candidate.sub_graph;
    return !candidate.is_partition || sub_graph.operator_count() == sub_graph.inside().Count();
  });
}

/// The same problem over every node of the graph, each of which is a tensor.
SearchProblem ProblemOverAllNodes(const DataflowGraph& graph, const std::vector<PricedCandidate>& candidates, size_t backend_count) {
  SearchProblem problem;
  problem.node_count = graph.size();
  problem.backend_count = backend_count;
  for (PostDfsIndex node = 0; node < graph.size(); ++node) problem.tensors.push_back({node, graph[node].outputs.ToVector()});
  for (const PricedCandidate& candidate : candidates) {
    const Cost cost = candidate.variants.empty() ? Cost::Invalid() : candidate.variants.front().cost;
    problem.candidates.push_back(
        {candidate.candidate.sub_graph.inside(), candidate.backend, {}, {}, {{cost, {}, {}}}, candidate.is_partition});
  }
  return problem;
}

Result<SearchProblem> ProblemOf(const DataflowGraph& graph, std::vector<PricedCandidate>& candidates, size_t backend_count) {
  if (!IsProblemOfACompile(graph, candidates)) return ProblemOverAllNodes(graph, candidates, backend_count);
  std::erase_if(candidates, [&](const PricedCandidate& candidate) {
    return !candidate.is_partition && candidate.candidate.sub_graph.operator_count() == 0;
  });
  const auto converts_nothing = [](const TensorType&, const Layout&, const Layout&) { return Cost(); };
  return COLLAGE_TRY(BuildProblem(graph, candidates, backend_count, converts_nothing)).problem;
}

}  // namespace

Result<std::vector<ChosenCandidate>> CheapestCover(const NamedFunction& function, const std::vector<CandidatePartition>& candidates,
                                                   const std::vector<SpecPointer>& specs, const FixedPrices& prices, double penalty) {
  const DataflowGraph& graph = function.graph();
  std::vector<std::optional<double>> price_of;
  for (const CandidatePartition& candidate : candidates) {
    // What breaks a condition that no rule may lift can be no function, so it has no price.
    const bool possible = candidate.sub_graph.IsValid(graph, {.allow_taps = true});
    price_of.push_back(possible ? prices.Of(candidate.spec->name, candidate.sub_graph.operator_count()) : std::nullopt);
  }
  const double scale = ScaleOf(price_of, penalty, graph.size());
  std::unordered_map<const PartitionSpec*, size_t> position;
  for (size_t i = 0; i < specs.size(); ++i) position.emplace(specs[i].get(), i);
  std::vector<PricedCandidate> priced;
  for (size_t i = 0; i < candidates.size(); ++i) {
    PricedCandidate candidate{candidates[i], {}};
    candidate.backend = position.at(candidates[i].spec.get());
    if (price_of[i]) {
      candidate.extracted = COLLAGE_TRY(ExtractFunction(graph, candidates[i].sub_graph));
      candidate.variants.push_back(PlainVariant(candidate.extracted, Cost::Seconds((*price_of[i] + penalty) * scale)));
    }
    priced.push_back(std::move(candidate));
  }
  for (PricedCandidate& host : COLLAGE_TRY(HostCandidates(graph, specs.size()))) priced.push_back(std::move(host));
  std::vector<PricedCandidate> searched = priced;
  const SearchProblem problem = COLLAGE_TRY(ProblemOf(graph, searched, specs.size() + 1));
  const Result<SearchResult> found = SearchShortestPath(problem);
  if (!found) return Fail(Uncovered(function, priced, specs, found.error()));
  std::vector<ChosenCandidate> chosen;
  for (const SearchChoice& choice : found->choices) {
    if (choice.candidate >= candidates.size()) continue;
    chosen.push_back({candidates[choice.candidate].sub_graph, searched[choice.candidate].backend, *price_of[choice.candidate]});
  }
  return chosen;
}

}  // namespace collage
