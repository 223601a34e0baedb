#include <algorithm>
#include <cstdint>
#include <memory>
#include <queue>
#include <unordered_map>

#include "collage/search/acyclic.h"
#include "collage/search/covered.h"
#include "collage/search/tables.h"
#include "collage/support/check.h"

namespace collage {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

// A tensor that somebody outside of the covered set reads or writes. Before its producer is covered it only has demands.
struct OpenTensor {
  size_t tensor;
  bool is_produced;
  uint8_t produced_layout;
  LayoutMask layouts;  // those in which it exists, or is demanded
  friend bool operator==(const OpenTensor&, const OpenTensor&) = default;
};

struct State {
  Covered covered;
  std::vector<OpenTensor> open;  // ascending by tensor
  size_t last_backend = kNone;
  Cost cost;
  size_t partitions = 0;
  size_t parent = kNone;
  SearchChoice choice{kNone, kNone};
};

class Dijkstra {
 public:
  Dijkstra(const SearchProblem& problem, const std::vector<bool>& forbidden) : problem_(problem), tables_(problem, forbidden) {
    useful_.assign(problem.tensors.size(), 0);
    last_use_.assign(problem.tensors.size(), 0);
    for (size_t t = 0; t < problem.tensors.size(); ++t) {
      const SearchTensor& tensor = problem.tensors[t];
      for (size_t consumer : tensor.consumers) last_use_[t] = std::max(last_use_[t], consumer);
      if (tensor.is_result) {
        useful_[t] |= 1;
        last_use_[t] = problem.node_count;
      }
    }
    for (size_t t = 0; t < problem.tensors.size(); ++t) useful_[t] |= tables_.AllWishes(t);
  }

  Result<SearchResult> Run() {
    Push(Start());
    while (!queue_.empty()) {
      const size_t id = queue_.top();
      queue_.pop();
      const State& state = *states_[id];
      furthest_ = std::max(furthest_, state.covered.next);
      std::vector<size_t>& settled = settled_[state.covered];
      if (std::any_of(settled.begin(), settled.end(), [&](size_t other) { return Dominates(*states_[other], state); })) continue;
      settled.push_back(id);
      ++expanded_;
      if (state.covered.next == problem_.node_count) return Finish(id);
      Expand(id);
    }
    return Fail("no valid candidate covers node " + std::to_string(furthest_));
  }

 private:
  static LayoutMask Bit(size_t layout) { return LayoutBit(layout); }

  [[nodiscard]] Cost Conversion(size_t tensor, size_t from, size_t to) const { return tables_.Conversion(tensor, from, to); }

  [[nodiscard]] State Start() const {
    State start;
    for (size_t t = 0; t < problem_.tensors.size(); ++t) {
      if (problem_.tensors[t].producer == SearchTensor::kOutside && !problem_.tensors[t].consumers.empty()) {
        start.open.push_back({t, true, 0, Bit(0)});
      }
    }
    return start;
  }

  void Push(State state) {
    states_.push_back(std::make_unique<State>(std::move(state)));
    queue_.push(states_.size() - 1);
  }

  void Expand(size_t id) {
    for (size_t c : tables_.StartingAt(states_[id]->covered.next)) {
      const SearchCandidate& candidate = problem_.candidates[c];
      if (candidate.inside.Intersects(states_[id]->covered.tail)) continue;
      const Covered covered = After(states_[id]->covered, candidate.inside);
      for (size_t v = 0; v < candidate.variants.size(); ++v) {
        if (tables_.VariantsOf(c)[v].is_usable) Push(Apply(id, {c, v}, covered));
      }
    }
  }

  static OpenTensor& Entry(std::vector<OpenTensor>& open, size_t tensor) {
    const auto at = std::lower_bound(open.begin(), open.end(), tensor, [](const OpenTensor& entry, size_t t) { return entry.tensor < t; });
    if (at != open.end() && at->tensor == tensor) return *at;
    return *open.insert(at, {tensor, false, 0, 0});
  }

  [[nodiscard]] State Apply(size_t id, SearchChoice choice, const Covered& covered) const {
    const State& from = *states_[id];
    const SearchCandidate& candidate = problem_.candidates[choice.candidate];
    const SearchTables::Variant& variant = tables_.VariantsOf(choice.candidate)[choice.variant];
    State state{covered, from.open, from.last_backend, from.cost + candidate.variants[choice.variant].cost, from.partitions, id, choice};
    for (size_t i = 0; i < candidate.inputs.size(); ++i) Demand(state, candidate.inputs[i], variant.input_layouts[i]);
    for (size_t i = 0; i < candidate.outputs.size(); ++i) Produce(state, candidate.outputs[i], variant.output_layouts[i]);
    if (candidate.is_partition) {
      if (from.last_backend != kNone && !problem_.transition.empty())
        state.cost += problem_.transition[from.last_backend][candidate.backend];
      state.last_backend = candidate.backend;
      ++state.partitions;
    }
    std::erase_if(state.open, [&](const OpenTensor& entry) { return IsClosed(entry, covered); });
    if (covered.next == problem_.node_count) {
      for (OpenTensor& entry : state.open) {
        if (problem_.tensors[entry.tensor].is_result) Demand(state, entry.tensor, 0);
      }
    }
    return state;
  }

  void Demand(State& state, size_t tensor, size_t layout) const {
    OpenTensor& entry = Entry(state.open, tensor);
    if (entry.layouts & Bit(layout)) return;
    if (entry.is_produced) state.cost += Conversion(tensor, entry.produced_layout, layout);
    entry.layouts |= Bit(layout);
  }

  void Produce(State& state, size_t tensor, size_t layout) const {
    OpenTensor& entry = Entry(state.open, tensor);
    for (size_t wanted = 0; wanted < tables_.LayoutsOf(tensor).size(); ++wanted) {
      if (entry.layouts & Bit(wanted)) state.cost += Conversion(tensor, layout, wanted);
    }
    entry.is_produced = true;
    entry.produced_layout = static_cast<uint8_t>(layout);
    entry.layouts |= Bit(layout);
  }

  [[nodiscard]] bool IsClosed(const OpenTensor& entry, const Covered& covered) const {
    if (!entry.is_produced || last_use_[entry.tensor] == problem_.node_count) return false;
    if (last_use_[entry.tensor] < covered.next) return true;
    const std::vector<size_t>& consumers = problem_.tensors[entry.tensor].consumers;
    return std::all_of(consumers.begin(), consumers.end(), [&](size_t node) { return node < covered.next || covered.tail.Contains(node); });
  }

  // Whatever follows `b` can follow `a` as well, at no more than Slack(a, b) in addition.
  [[nodiscard]] Cost Slack(const State& a, const State& b) const {
    Cost slack = TransitionSlack(a.last_backend, b.last_backend);
    size_t i = 0;
    size_t j = 0;
    while (i < a.open.size() || j < b.open.size()) {
      const size_t ta = i < a.open.size() ? a.open[i].tensor : kNone;
      const size_t tb = j < b.open.size() ? b.open[j].tensor : kNone;
      const OpenTensor* x = ta <= tb ? &a.open[i++] : nullptr;
      const OpenTensor* y = tb <= ta ? &b.open[j++] : nullptr;
      slack += TensorSlack(x, y);
    }
    return slack;
  }

  [[nodiscard]] Cost TransitionSlack(size_t a, size_t b) const {
    if (a == b || problem_.transition.empty() || a == kNone) return Cost();
    Cost worst;
    for (size_t to = 0; to < problem_.backend_count; ++to) {
      const Cost other = b == kNone ? Cost() : problem_.transition[b][to];
      if (problem_.transition[a][to] > other) worst = std::max(worst, problem_.transition[a][to] - other);
    }
    return worst;
  }

  [[nodiscard]] Cost TensorSlack(const OpenTensor* a, const OpenTensor* b) const {
    const size_t tensor = a ? a->tensor : b->tensor;
    const LayoutMask useful = useful_[tensor];
    const bool produced = (a && a->is_produced) || (b && b->is_produced);
    Cost slack;
    for (size_t layout = 0; layout < tables_.LayoutsOf(tensor).size(); ++layout) {
      if (!(useful & Bit(layout))) continue;
      const bool in_a = a && (a->layouts & Bit(layout));
      const bool in_b = b && (b->layouts & Bit(layout));
      if (!produced) {
        if (in_a && !in_b) slack += WorstConversionTo(tensor, layout);
        continue;
      }
      COLLAGE_CHECK(a && b && a->is_produced && b->is_produced, "states of one covered set disagree about what is produced");
      if (in_a) continue;
      const Cost mine = Conversion(tensor, a->produced_layout, layout);
      const Cost other = in_b ? Cost() : Conversion(tensor, b->produced_layout, layout);
      if (mine > other) slack += mine - other;
    }
    return slack;
  }

  [[nodiscard]] Cost WorstConversionTo(size_t tensor, size_t layout) const { return tables_.WorstConversion(tensor, layout); }

  [[nodiscard]] bool Dominates(const State& settled, const State& state) const {
    const Cost reachable = settled.cost + Slack(settled, state);
    if (reachable != state.cost) return reachable < state.cost;
    // An exact tie falls to the declared preference. Equal costs: settled was popped first, so it is preferred. Otherwise only
    // the partition count tells without looking at what follows.
    return settled.cost == state.cost || settled.partitions < state.partitions;
  }

  // The declared preference among equal prices; called on exact ties only, so the walk over both paths is rare.
  [[nodiscard]] bool Precedes(size_t a, size_t b) const {
    const State& x = *states_[a];
    const State& y = *states_[b];
    if (x.cost != y.cost) return x.cost < y.cost;
    // Edges of price zero lead ahead: those behind must be expanded before a tie is decided.
    if (x.covered.next != y.covered.next) return x.covered.next < y.covered.next;
    if (x.partitions != y.partitions) return x.partitions < y.partitions;
    return ComparePreference(problem_, Path(a), Path(b)) < 0;
  }

  [[nodiscard]] std::vector<SearchChoice> Path(size_t id) const {
    std::vector<SearchChoice> path;
    for (; states_[id]->parent != kNone; id = states_[id]->parent) path.push_back(states_[id]->choice);
    std::reverse(path.begin(), path.end());
    return path;
  }

  [[nodiscard]] SearchResult Finish(size_t id) const {
    const Cost cost = states_[id]->cost;
    const Cost lower_bound = tables_.IsWhole() ? cost : std::min(cost, tables_.LeastFrom(0));
    return {cost, Path(id), states_[id]->partitions, lower_bound, expanded_, lower_bound == cost};
  }

  struct Later {
    const Dijkstra* search;
    bool operator()(size_t a, size_t b) const { return search->Precedes(b, a); }
  };

  const SearchProblem& problem_;
  const SearchTables tables_;
  std::vector<LayoutMask> useful_;  // layouts in which some candidate may want the tensor
  std::vector<size_t> last_use_;
  std::vector<std::unique_ptr<State>> states_;
  std::priority_queue<size_t, std::vector<size_t>, Later> queue_{Later{this}};
  std::unordered_map<Covered, std::vector<size_t>, CoveredHash> settled_;
  size_t expanded_ = 0;
  size_t furthest_ = 0;
};

}  // namespace

Result<SearchResult> SearchDijkstra(const SearchProblem& problem) {
  return CheapestAcyclic(problem, kMostSolves, [&](const std::vector<bool>& forbidden) { return Dijkstra(problem, forbidden).Run(); });
}

}  // namespace collage
