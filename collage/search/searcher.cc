#include "collage/search/searcher.h"

#include "collage/search/evolutionary.h"
#include "collage/search/exact.h"
#include "collage/search/greedy.h"
#include "collage/search/op_level.h"
#include "collage/search/shortest_path.h"

namespace collage {
namespace {

/// The paper's second stage on top of its first. The price reported is that of the sum even where plans were measured.
Result<SearchResult> SearchInTwoStages(const SearchProblem& problem, const SearcherOptions& options) {
  Result<SearchResult> start = SearchOpLevel(problem, {options.is_graph_backend});
  // Where only graph backends cover some node there is no op-level plan without them.
  if (!start) start = SearchOpLevel(problem);
  if (!start || start->choices.empty()) return start;
  EvolutionOptions evolution;
  evolution.is_graph_backend = options.is_graph_backend;
  evolution.seed = options.seed;
  evolution.measure = options.measure;
  EvolutionResult evolved = COLLAGE_TRY(SearchByEvolution(problem, start->choices, evolution, options.progress));
  SearchResult result;
  result.cost = PriceOfCover(problem, evolved.choices);
  for (const SearchChoice& choice : evolved.choices) result.partitions += problem.candidates[choice.candidate].is_partition ? 1 : 0;
  result.choices = std::move(evolved.choices);
  result.states_expanded = evolved.measured;
  return result;
}

}  // namespace

std::vector<Searcher> Searchers(const SearcherOptions& options) {
  return {{"sweep", true, [](const SearchProblem& problem) { return SearchShortestPath(problem); }},
          {"dijkstra", true, SearchDijkstra},
          {"exact", true, [options](const SearchProblem& problem) { return SearchExactly(problem, {options.most_seconds}); }},
          {"op-level", false, [options](const SearchProblem& problem) { return SearchOpLevel(problem, {options.is_graph_backend}); }},
          {"evolutionary", false, [options](const SearchProblem& problem) { return SearchInTwoStages(problem, options); }, true},
          {"greedy", false, [options](const SearchProblem& problem) { return SearchGreedily(problem, options.priority); }}};
}

Result<Searcher> FindSearcher(const std::string& name, const SearcherOptions& options) {
  std::string names;
  for (Searcher& searcher : Searchers(options)) {
    if (searcher.name == name) return std::move(searcher);
    names += (names.empty() ? "" : ", ") + searcher.name;
  }
  return Fail("there is no searcher '" + name + "', expected one of " + names);
}

}  // namespace collage
