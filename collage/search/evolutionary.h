#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "collage/search/search.h"
#include "collage/support/progress.h"

namespace collage {

/// What a whole plan really costs; Invalid where it cannot be compiled or run. The driver passes an end-to-end measurement, tests
/// a fixed function.
using PlanMeasurement = std::function<Cost(const std::vector<SearchChoice>&)>;

struct EvolutionOptions {
  std::vector<bool> is_graph_backend;  ///< by number
  size_t population = 20;
  size_t generations = 20;
  double crossover_probability = 0.8;
  double mutation_probability = 0.2;  ///< of an individual; a gene of it then changes with a chance of one in ten
  uint64_t seed = 1;
  PlanMeasurement measure;  ///< PriceOfCover when empty
};

struct EvolutionResult {
  std::vector<SearchChoice> choices;
  Cost cost;            ///< as measured
  Cost start_cost;      ///< of the plan that it started from, as measured
  size_t measured = 0;  ///< different plans
};

/// The graph-level search of the Collage paper: starts from a plan (there: the op-level optimum), and lets evolution decide which
/// of its partitions are handed to a graph compiler, which may gain more from a whole region than the sum of kernels says. An
/// individual has one gene for each partition that no graph compiler has yet: stay, or go to one of the graph backends (the paper
/// has one; here any number, and what the start gave to a graph backend may go to another). The nodes handed to a backend are
/// covered by its largest candidates among them; what they leave is covered at the least price by the rest. The first population
/// is the start, all handed to each of the graph backends, and random individuals. Parents are chosen by tournaments of three,
/// crossed at two points and mutated; the best individual always survives. Seeded and deterministic; never worse than its start.
///
/// Errors when `start` is no acyclic cover that can be measured.
Result<EvolutionResult> SearchByEvolution(const SearchProblem& problem, const std::vector<SearchChoice>& start,
                                          const EvolutionOptions& options, const Progress& progress = {});

}  // namespace collage
