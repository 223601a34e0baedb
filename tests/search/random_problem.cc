#include "tests/search/random_problem.h"

#include <functional>
#include <tuple>

namespace collage {

SearchProblem RandomProblem(std::mt19937_64& random, bool coarse_prices) {
  SearchProblem problem;
  problem.node_count = 1 + random() % 6;
  problem.layout_count = 1 + random() % 3;
  problem.backend_count = 1 + random() % 3;
  const auto price = [&random, coarse_prices] {
    return coarse_prices ? Cost::Microseconds(static_cast<double>(random() % 3))
                         : Cost::Microseconds(static_cast<double>(random() % 1000) / 7.0);
  };
  problem.tensors.resize(problem.node_count + 1);
  for (size_t n = 0; n < problem.node_count; ++n) {
    problem.tensors[n].producer = n;
    const size_t uses = 1 + random() % 2;
    for (size_t u = 0; u < uses; ++u) {
      SearchTensor& used = problem.tensors[n == 0 || random() % 5 == 0 ? problem.node_count : random() % n];
      if (used.consumers.empty() || used.consumers.back() != n) used.consumers.push_back(n);
    }
  }
  for (size_t n = 0; n < problem.node_count; ++n) {
    problem.tensors[n].is_result = problem.tensors[n].consumers.empty() || random() % 5 == 0;
  }
  std::vector<Cost> conversions(problem.tensors.size() * 9);
  for (Cost& cost : conversions) cost = price();
  problem.conversion = [conversions](size_t t, size_t from, size_t to) { return from == to ? Cost() : conversions[t * 9 + from * 3 + to]; };
  problem.transition.assign(problem.backend_count, std::vector<Cost>(problem.backend_count));
  for (auto& row : problem.transition) {
    for (Cost& cost : row) cost = price();
  }
  const size_t all = size_t{1} << problem.node_count;
  for (size_t mask = 1; mask < all; ++mask) {
    const bool single = (mask & (mask - 1)) == 0;
    if (!single && random() % 3 != 0) continue;
    SearchCandidate candidate;
    for (size_t n = 0; n < problem.node_count; ++n) {
      if (mask >> n & 1) candidate.inside.Add(n);
    }
    candidate.backend = random() % problem.backend_count;
    candidate.is_partition = random() % 6 != 0;
    for (size_t t = 0; t < problem.tensors.size(); ++t) {
      const SearchTensor& tensor = problem.tensors[t];
      const bool inside = tensor.producer != SearchTensor::kOutside && candidate.inside.Contains(tensor.producer);
      bool read_inside = false;
      bool read_outside = tensor.is_result;
      for (size_t consumer : tensor.consumers) (candidate.inside.Contains(consumer) ? read_inside : read_outside) = true;
      if (inside && read_outside) candidate.outputs.push_back(t);
      if (!inside && read_inside) candidate.inputs.push_back(t);
    }
    const size_t variants = 1 + random() % 2;
    for (size_t v = 0; v < variants; ++v) {
      SearchVariant variant;
      variant.cost = random() % 8 == 0 ? Cost::Invalid() : price();
      for (size_t i = 0; i < candidate.inputs.size(); ++i) variant.input_layouts.push_back(random() % problem.layout_count);
      for (size_t i = 0; i < candidate.outputs.size(); ++i) variant.output_layouts.push_back(random() % problem.layout_count);
      candidate.variants.push_back(std::move(variant));
    }
    problem.candidates.push_back(std::move(candidate));
  }
  return problem;
}

std::optional<std::vector<SearchChoice>> BruteForce(const SearchProblem& problem) {
  std::optional<std::vector<SearchChoice>> best;
  std::vector<SearchChoice> chosen;
  // "Equal prices fall to fewer partitions, then to the order in which the targets were given, then to the lexicographically
  // smallest list of inside sets", then to earlier variants; the host's choices decide last.
  const auto rank = [&](const std::vector<SearchChoice>& choices) {
    std::vector<size_t> backends;
    std::vector<std::vector<size_t>> insides;
    std::vector<size_t> variants;
    for (const SearchChoice& choice : choices) {
      const SearchCandidate& candidate = problem.candidates[choice.candidate];
      if (!candidate.is_partition) continue;
      backends.push_back(candidate.backend);
      insides.push_back(candidate.inside.ToVector());
      variants.push_back(choice.variant);
    }
    return std::make_tuple(PriceOfCover(problem, choices), backends.size(), backends, insides, variants, choices);
  };
  const std::function<void(IndexSet)> extend = [&](const IndexSet& covered) {
    size_t next = 0;
    while (next < problem.node_count && covered.Contains(next)) ++next;
    if (next == problem.node_count) {
      if (FindCycle(problem, chosen).empty() && (!best || rank(chosen) < rank(*best))) best = chosen;
      return;
    }
    for (size_t c = 0; c < problem.candidates.size(); ++c) {
      const SearchCandidate& candidate = problem.candidates[c];
      if (candidate.inside.First() != next || candidate.inside.Intersects(covered)) continue;
      for (size_t v = 0; v < candidate.variants.size(); ++v) {
        if (!candidate.variants[v].cost.IsKnown()) continue;
        chosen.push_back({c, v});
        extend(covered | candidate.inside);
        chosen.pop_back();
      }
    }
  };
  extend({});
  return best;
}

}  // namespace collage
