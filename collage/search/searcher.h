#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collage/search/search.h"
#include "collage/support/progress.h"

namespace collage {

/// One way to find a cover, as a value: the searchers differ in what they guarantee, never in what a cover is or costs.
struct Searcher {
  std::string name;
  bool is_exact;  ///< finds the cheapest acyclic cover
  std::function<Result<SearchResult>(const SearchProblem&)> search;
  bool runs_whole_plans = false;  ///< asks SearcherOptions::measure, which takes time of its own
};

/// What a whole plan really takes; Invalid where it cannot be compiled, run or measured.
using PlanTime = std::function<Cost(const std::vector<SearchChoice>&)>;

struct SearcherOptions {
  std::vector<bool> is_graph_backend;  ///< by number, for "op-level" and "evolutionary"
  std::vector<size_t> priority;        ///< of backends, for "greedy"
  uint64_t seed = 1;                   ///< for "evolutionary"
  double most_seconds = 60;            ///< for "exact"
  /// End-to-end measurement of whole plans, for "evolutionary"; empty: the sum of prices.
  PlanTime measure;
  Progress progress;  ///< of "evolutionary", which ends with the best plan so far when it should stop
};

/// "sweep" (over covered sets, the default), "dijkstra" (a priority queue), "exact" (integer programming), "op-level"
/// and "evolutionary" (the paper's two stages, the second starting from the first), "greedy" (priorities alone).
std::vector<Searcher> Searchers(const SearcherOptions& options = {});
/// Errors list the names.
Result<Searcher> FindSearcher(const std::string& name, const SearcherOptions& options = {});

}  // namespace collage
