#include "collage/search/op_level.h"

#include <algorithm>
#include <unordered_map>

#include "collage/search/acyclic.h"
#include "collage/search/covered.h"

namespace collage {
namespace {

class OpLevel {
 public:
  OpLevel(const SearchProblem& problem, const OpLevelOptions& options, const std::vector<bool>& forbidden) : problem_(problem) {
    by_first_.resize(problem.node_count);
    for (size_t c = 0; c < problem.candidates.size(); ++c) {
      const SearchCandidate& candidate = problem.candidates[c];
      const bool is_left_out = candidate.backend < options.is_graph_backend.size() && options.is_graph_backend[candidate.backend];
      if (forbidden[c] || is_left_out || candidate.inside.Empty()) continue;
      const Kernel kernel = CheapestAlone(c);
      if (kernel.price.IsKnown()) by_first_[candidate.inside.First()].push_back(kernel);
    }
    context_ = MeanTransition();
  }

  Result<SearchResult> Run() {
    // Prefixes are visited in the order of their first uncovered node; each one's best way is settled before it is extended.
    Table best(problem_.node_count + 1);
    best[0].emplace(Prefix{}, Best{});
    size_t furthest = 0;
    size_t visited = 0;
    for (size_t next = 0; next < problem_.node_count; ++next) {
      for (const auto& [prefix, here] : best[next]) {
        furthest = next;
        ++visited;
        for (const Kernel& kernel : by_first_[next]) {
          const SearchCandidate& candidate = problem_.candidates[kernel.choice.candidate];
          if (candidate.inside.Intersects(prefix.tail)) continue;
          Covered after = After({next, prefix.tail}, candidate.inside);
          Best extended{here.price + kernel.price, here.partitions, next, prefix, kernel.choice};
          if (candidate.is_partition) {
            if (here.partitions > 0) extended.price += context_;
            ++extended.partitions;
          }
          const auto [at, is_new] = best[after.next].try_emplace({std::move(after.tail), extended.partitions > 0}, extended);
          if (!is_new && extended < at->second) at->second = extended;
        }
      }
    }
    if (best.back().empty()) return Fail("no valid candidate covers node " + std::to_string(furthest));
    return Finish(best, visited);
  }

 private:
  struct Kernel {
    SearchChoice choice;
    Cost price;
  };
  /// Covered nodes beyond the first uncovered one, and whether a partition ran: only the first of them changes no context.
  struct Prefix {
    IndexSet tail;
    bool has_run = false;
    friend bool operator==(const Prefix&, const Prefix&) = default;
  };
  struct PrefixHash {
    size_t operator()(const Prefix& prefix) const { return HashCombine(prefix.tail.Hash(), prefix.has_run); }
  };
  struct Best {
    Cost price;
    size_t partitions = 0;
    size_t from = 0;
    Prefix from_prefix;
    SearchChoice choice{};

    /// The last test makes the outcome independent of the order in which a hash table is walked.
    friend bool operator<(const Best& a, const Best& b) {
      if (a.price != b.price) return a.price < b.price;
      if (a.partitions != b.partitions) return a.partitions < b.partitions;
      return a.choice < b.choice;
    }
  };

  using Table = std::vector<std::unordered_map<Prefix, Best, PrefixHash>>;  // by first uncovered node

  /// The cheapest variant when all that goes in and comes out is plain.
  [[nodiscard]] Kernel CheapestAlone(size_t c) const {
    const SearchCandidate& candidate = problem_.candidates[c];
    Kernel cheapest{{c, 0}, Cost::Invalid()};
    for (size_t v = 0; v < candidate.variants.size(); ++v) {
      const SearchVariant& variant = candidate.variants[v];
      Cost price = variant.cost;
      for (size_t i = 0; i < candidate.inputs.size(); ++i) price += Conversion(candidate.inputs[i], 0, variant.input_layouts[i]);
      for (size_t i = 0; i < candidate.outputs.size(); ++i) price += Conversion(candidate.outputs[i], variant.output_layouts[i], 0);
      if (price < cheapest.price) cheapest = {{c, v}, price};
    }
    return cheapest;
  }

  [[nodiscard]] Cost Conversion(size_t tensor, size_t from, size_t to) const {
    return from == to || !problem_.conversion ? Cost() : problem_.conversion(tensor, from, to);
  }

  [[nodiscard]] Cost MeanTransition() const {
    double sum = 0;
    size_t count = 0;
    for (const std::vector<Cost>& row : problem_.transition) {
      for (const Cost cost : row) {
        if (!cost.IsKnown()) continue;
        sum += cost.ToSeconds();
        ++count;
      }
    }
    return count == 0 ? Cost() : Cost::Seconds(sum / static_cast<double>(count));
  }

  [[nodiscard]] SearchResult Finish(const Table& best, size_t visited) const {
    SearchResult result;
    const Best* last = nullptr;
    for (const auto& [prefix, one] : best.back()) {
      if (!last || one < *last) last = &one;
    }
    result.partitions = last->partitions;
    for (const Best* here = last;; here = &best[here->from].at(here->from_prefix)) {
      result.choices.push_back(here->choice);
      if (here->from == 0) break;
    }
    std::reverse(result.choices.begin(), result.choices.end());
    result.cost = PriceOfCover(problem_, result.choices);
    result.states_expanded = visited;
    return result;
  }

  const SearchProblem& problem_;
  std::vector<std::vector<Kernel>> by_first_;
  Cost context_;
};

}  // namespace

Result<SearchResult> SearchOpLevel(const SearchProblem& problem, const OpLevelOptions& options) {
  if (problem.node_count == 0) return SearchResult{};
  return CheapestAcyclic(problem, kMostSolves,
                         [&](const std::vector<bool>& forbidden) { return OpLevel(problem, options, forbidden).Run(); });
}

}  // namespace collage
