#include "tests/search/random_problem.h"

#include <algorithm>
#include <functional>
#include <tuple>

namespace collage {

namespace {

/// Draws everything of a problem but its graph: results, prices, layouts, conversions, transitions, candidates.
SearchProblem Fill(SearchProblem problem, std::mt19937_64& random, bool coarse_prices) {
  const auto price = [&random, coarse_prices] {
    return coarse_prices ? Cost::Microseconds(static_cast<double>(random() % 3))
                         : Cost::Microseconds(static_cast<double>(random() % 1000) / 7.0);
  };
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

}  // namespace

SearchProblem RandomProblem(std::mt19937_64& random, bool coarse_prices) {
  SearchProblem problem;
  problem.node_count = 1 + random() % 6;
  problem.layout_count = 1 + random() % 3;
  problem.backend_count = 1 + random() % 3;
  problem.tensors.resize(problem.node_count + 1);
  for (size_t n = 0; n < problem.node_count; ++n) {
    problem.tensors[n].producer = n;
    const size_t uses = 1 + random() % 2;
    for (size_t u = 0; u < uses; ++u) {
      SearchTensor& used = problem.tensors[n == 0 || random() % 5 == 0 ? problem.node_count : random() % n];
      if (used.consumers.empty() || used.consumers.back() != n) used.consumers.push_back(n);
    }
  }
  return Fill(std::move(problem), random, coarse_prices);
}

SearchProblem RandomProblemOver(const std::vector<std::vector<size_t>>& producers, std::mt19937_64& random, bool coarse_prices) {
  SearchProblem problem;
  problem.node_count = producers.size();
  problem.layout_count = 1 + random() % 3;
  problem.backend_count = 1 + random() % 3;
  problem.tensors.resize(problem.node_count + 1);
  for (size_t n = 0; n < problem.node_count; ++n) {
    problem.tensors[n].producer = n;
    for (size_t producer : producers[n]) problem.tensors[producer].consumers.push_back(n);
    if (producers[n].empty() || random() % 8 == 0) problem.tensors[problem.node_count].consumers.push_back(n);
  }
  return Fill(std::move(problem), random, coarse_prices);
}

std::vector<std::vector<std::vector<size_t>>> ConnectedGraphs(size_t node_count) {
  std::vector<std::vector<std::vector<size_t>>> graphs;
  const size_t pairs = node_count * (node_count - 1) / 2;
  for (size_t edges = 0; edges < size_t{1} << pairs; ++edges) {
    std::vector<std::vector<size_t>> producers(node_count);
    std::vector<size_t> component(node_count);
    for (size_t n = 0; n < node_count; ++n) component[n] = n;
    size_t bit = 0;
    for (size_t to = 1; to < node_count; ++to) {
      for (size_t from = 0; from < to; ++from, ++bit) {
        if (!(edges >> bit & 1u)) continue;
        producers[to].push_back(from);
        const size_t old = component[to];
        const size_t joined = component[from];
        for (size_t& of : component) of = of == old ? joined : of;
      }
    }
    const bool connected = std::all_of(component.begin(), component.end(), [&](size_t of) { return of == component[0]; });
    if (connected) graphs.push_back(std::move(producers));
  }
  return graphs;
}

SearchProblem RepeatedBlocks(std::mt19937_64& random, size_t blocks, bool coarse_prices) {
  constexpr size_t kBlock = 20;
  SearchProblem problem;
  problem.node_count = blocks * kBlock;
  problem.layout_count = 2;
  problem.backend_count = 3;
  const auto price = [&random, coarse_prices] {
    return coarse_prices ? Cost::Microseconds(static_cast<double>(random() % 3))
                         : Cost::Microseconds(static_cast<double>(random() % 1000) / 7.0);
  };
  const Cost conversion = Cost::Microseconds(coarse_prices ? 1 : 7.5);
  problem.conversion = [conversion](size_t, size_t from, size_t to) { return from == to ? Cost() : conversion; };
  problem.transition.assign(3, std::vector<Cost>(3));
  for (auto& row : problem.transition) {
    for (Cost& cost : row) cost = Cost::Microseconds(static_cast<double>(random() % 3));
  }
  // Tensor n is what node n makes, the last one is the function's input.
  problem.tensors.resize(problem.node_count + 1);
  for (size_t n = 0; n < problem.node_count; ++n) problem.tensors[n].producer = n;
  problem.tensors[problem.node_count - 1].is_result = true;
  std::vector<std::vector<size_t>> reads(kBlock);  // how many nodes back, within the block or the last node of one before
  for (size_t n = 0; n < kBlock; ++n) {
    reads[n].push_back(1);
    if (n > 1 && random() % 4 == 0) reads[n].push_back(2);
    if (random() % 16 == 0) reads[n].push_back(n + 1);
  }
  if (random() % 2 == 0) reads[kBlock - 1].push_back(2 * kBlock);
  for (size_t n = 0; n < problem.node_count; ++n) {
    for (const size_t back : reads[n % kBlock]) {
      std::vector<size_t>& consumers = problem.tensors[back <= n ? n - back : problem.node_count].consumers;
      if (consumers.empty() || consumers.back() != n) consumers.push_back(n);
    }
  }
  const auto add = [&](const std::vector<size_t>& inside, size_t backend, const std::vector<SearchVariant>& variants) {
    SearchCandidate candidate;
    candidate.inside = IndexSet(inside);
    candidate.backend = backend;
    for (size_t t = 0; t < problem.tensors.size(); ++t) {
      const SearchTensor& tensor = problem.tensors[t];
      const bool made = tensor.producer != SearchTensor::kOutside && candidate.inside.Contains(tensor.producer);
      bool read_inside = false;
      bool read_outside = tensor.is_result;
      for (size_t consumer : tensor.consumers) (candidate.inside.Contains(consumer) ? read_inside : read_outside) = true;
      if (made && read_outside) candidate.outputs.push_back(t);
      if (!made && read_inside) candidate.inputs.push_back(t);
    }
    for (SearchVariant variant : variants) {
      const size_t layout = variant.input_layouts[0];
      variant.input_layouts.assign(candidate.inputs.size(), layout);
      variant.output_layouts.assign(candidate.outputs.size(), variant.output_layouts[0]);
      candidate.variants.push_back(std::move(variant));
    }
    problem.candidates.push_back(std::move(candidate));
  };
  for (size_t n = 0; n < kBlock; ++n) {
    for (size_t k = 0; k < 4; ++k) {
      // Neighbours only: such candidates cannot form a cycle, of which twelve blocks would have twelve times as many.
      std::vector<size_t> shape;
      for (size_t m = n; m <= std::min(n + k, kBlock - 1); ++m) shape.push_back(m);
      std::vector<SearchVariant> variants;
      for (size_t v = 0; v <= random() % 2; ++v) variants.push_back({price(), {random() % 2}, {random() % 2}});
      const size_t backend = random() % 3;
      for (size_t block = 0; block < blocks; ++block) {
        std::vector<size_t> inside;
        for (const size_t m : shape) inside.push_back(block * kBlock + m);
        add(inside, backend, variants);
      }
    }
  }
  for (size_t block = 1; block + 4 < blocks; block += 5) {
    std::vector<size_t> inside;
    for (size_t m = block * kBlock; m < (block + 3) * kBlock; ++m) inside.push_back(m);
    add(inside, random() % 3, {{Cost::Microseconds(coarse_prices ? 20 : 900), {0}, {0}}});
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
