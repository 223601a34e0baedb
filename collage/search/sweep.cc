#include "collage/search/sweep.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "collage/search/extension.h"
#include "collage/search/frontier.h"
#include "collage/search/segments.h"

namespace collage {
namespace {

constexpr uint32_t kNoParent = static_cast<uint32_t>(-1);
// Of so many times the states that are kept it is found out which of them others dominate.
constexpr size_t kMostConsidered = 8;

class Sweeper {
 public:
  Sweeper(const SearchTables& tables, const SweepLimits& limits, bool reuse_segments, const SweepBound* bound)
      : problem_(tables.problem()),
        limits_(limits),
        reuses_segments_(reuse_segments && !bound),
        bound_(bound),
        tables_(tables),
        segments_(reuses_segments_ ? std::optional<Segments>(tables_) : std::nullopt),
        layers_(problem_.node_count + 1) {
    if (!bound_) return;
    open_.emplace(bound_->relaxation, tables_);
    place_of_.assign(bound_->graph.size(), nullptr);
  }

  SweepAnswer Run() {
    Start();
    size_t furthest = 0;
    for (size_t next = 0; next < problem_.node_count && !gave_up_; ++next) {
      if (layers_[next].empty()) continue;
      furthest = next;
      DropDearSets(layers_[next]);
      for (const std::unique_ptr<Place>& place : layers_[next]) Expand(*place);
      layers_[next].clear();
      by_tail_.erase(next);
    }
    const bool is_covered = !gave_up_ && !layers_.back().empty() && layers_.back().front()->frontier.cheapest().IsKnown();
    if (!is_covered || (bound_ && layers_.back().front()->frontier.cheapest() > bound_->cutoff))
      return {std::nullopt, gave_up_, furthest, expanded_};
    return {Finish(layers_.back().front()->frontier), false, furthest, expanded_};
  }

 private:
  using State = Frontier::State;

  /// What is known of one covered set.
  struct Place {
    Frontier frontier;
    std::optional<FrontierBound> bound;
  };

  void Start() {
    const Covered nothing{};
    std::vector<size_t> open;
    for (size_t t = 0; t < problem_.tensors.size(); ++t) {
      if (tables_.IsOpen(t, nothing)) open.push_back(t);
    }
    const std::vector<Frontier::TensorState> plain(open.size(), {LayoutBit(0), 0});
    Place& start = AddPlace(nothing, std::move(open), 0);
    start.frontier.Add({Cost(), kNoParent, 0, 0, 0, SearchTables::kNobody, 0}, plain.data(), precedes_);
  }

  // Wide graphs with candidates across branches can have more covered sets than time: the least promising ones go.
  void DropDearSets(std::vector<std::unique_ptr<Place>>& layer) {
    if (layer.size() <= limits_.most_sets) return;
    gave_up_ = limits_.gives_up;
    recording_.is_whole = false;
    const auto promise = [&](const auto& place) {
      const Cost cheapest = place->frontier.cheapest();
      return place->bound ? place->bound->LeastOfAny(cheapest) : cheapest + place->frontier.least_to_go();
    };
    std::stable_sort(layer.begin(), layer.end(), [&](const auto& a, const auto& b) { return promise(a) < promise(b); });
    dropped_ = std::min(dropped_, promise(layer[limits_.most_sets]));
    layer.resize(limits_.most_sets);
  }

  void Expand(Place& place) {
    if (gave_up_) return;
    Frontier& frontier = place.frontier;
    Cost cut = Cost::Invalid();
    if (bound_) {
      frontier.KeepWithin(bound_->cutoff, kMostConsidered * limits_.most_states, cut,
                          [&](const State& state) { return place.bound->Least(frontier, state); });
    }
    const std::vector<State> kept =
        bound_ ? frontier.TakeMostPromising(precedes_, limits_.most_states, cut) : frontier.TakeBest(precedes_, limits_.most_states, cut);
    if (kept.empty()) return;
    dropped_ = std::min(dropped_, bound_ ? cut : cut + frontier.least_to_go());
    if (!cut.IsInvalid()) recording_.is_whole = false;
    expanded_ += kept.size();
    gave_up_ = expanded_ > limits_.most_expanded || (limits_.gives_up && !cut.IsInvalid());
    if (gave_up_) return;
    const size_t node = frontier.covered().next;
    if (recording_.end == node) FinishRecording(frontier, kept);
    const auto first_id = static_cast<uint32_t>(path_.size());
    ++set_;
    for (const State& state : kept) path_.push_back({state.cost, state.parent, state.candidate, state.variant, state.partitions, set_});
    if (bound_) {
      // Nothing is entered from where no cover can be completed.
      for (const CoverGraph::Edge& edge : bound_->relaxation.EdgesOf(place.bound->set())) {
        if (bound_->relaxation.LeastToGo(edge.to) < kNever) ExtendBy(edge.candidate, PlaceAt(edge, frontier), frontier, kept, first_id);
      }
      return;
    }
    const bool is_known = EnterSegment(frontier, kept, first_id);
    for (const size_t c : tables_.StartingAt(node)) {
      const IndexSet& inside = problem_.candidates[c].inside;
      if (is_known && inside.Last() < segments_->EndOf(node)) continue;
      if (inside.Intersects(frontier.covered().tail)) continue;
      ExtendBy(c, PlaceAt(After(frontier.covered(), inside), frontier, c), frontier, kept, first_id);
    }
  }

  /// At the beginning of a stretch: true when its outcome is known, and its states wait at its end; else it is recorded.
  bool EnterSegment(const Frontier& frontier, const std::vector<State>& kept, uint32_t first_id) {
    if (!segments_) return false;
    const size_t begin = frontier.covered().next;
    const size_t end = segments_->EndOf(begin);
    if (end == 0 || end == problem_.node_count || !layers_[end].empty() || layers_[begin].size() > 1) return false;
    const Segments::Fingerprint fingerprint = segments_->FingerprintOf(begin, frontier, kept);
    const auto known = outcomes_.find(fingerprint);
    if (known == outcomes_.end()) {
      recording_ = {fingerprint, begin, end, first_id, static_cast<uint32_t>(path_.size()), kept.front().cost, kept.front().partitions,
                    true};
      return false;
    }
    Replay(known->second, frontier, kept, first_id);
    return true;
  }

  void Replay(const SegmentOutcome& outcome, const Frontier& from, const std::vector<State>& kept, uint32_t first_id) {
    const size_t begin = from.covered().next;
    const Covered at_end{segments_->EndOf(begin), {}};
    const std::vector<size_t> within = segments_->CandidatesWithin(begin);
    std::vector<size_t> open = from.open();
    for (size_t node = begin; node < at_end.next; ++node)
      open.insert(open.end(), tables_.ProducedBy(node).begin(), tables_.ProducedBy(node).end());
    std::sort(open.begin(), open.end());
    std::erase_if(open, [&](size_t tensor) { return !tables_.IsOpen(tensor, at_end); });
    by_tail_[at_end.next].emplace(IndexSet(), 0);
    Frontier& to = AddPlace(at_end, std::move(open), 0).frontier;
    const auto first_step = static_cast<uint32_t>(path_.size());
    const auto placed = [&](const SegmentOutcome::Step& step) {
      return PathNode{
          kept.front().cost + step.cost,
          step.parent < 0 ? first_id + static_cast<uint32_t>(-1 - step.parent) : first_step + static_cast<uint32_t>(step.parent),
          static_cast<uint32_t>(within[step.candidate]), step.variant, static_cast<uint32_t>(kept.front().partitions + step.partitions)};
    };
    for (const SegmentOutcome::Step& step : outcome.steps) path_.push_back(placed(step));
    for (const SegmentOutcome::Last& last : outcome.last) {
      const PathNode node = placed(last.step);
      to.Add({node.cost, node.parent, node.candidate, node.variant, node.partitions, last.last_backend, 0}, last.tensors.data(), precedes_);
    }
  }

  /// What is being recorded of a stretch. It cannot be used where a limit dropped states, or where a tie was decided by what came
  /// before the stretch.
  struct Recording {
    Segments::Fingerprint fingerprint{};
    size_t begin = 0;
    size_t end = 0;
    uint32_t first_id = 0;    ///< of the states entered
    uint32_t first_step = 0;  ///< of the states within
    Cost cost;
    uint32_t partitions = 0;
    bool is_whole = false;
  };

  void FinishRecording(const Frontier& frontier, const std::vector<State>& kept) {
    const Recording recording = std::exchange(recording_, Recording());
    if (!recording.is_whole) return;
    const std::vector<size_t> within = segments_->CandidatesWithin(recording.begin);
    std::unordered_map<size_t, uint32_t> position;
    for (size_t i = 0; i < within.size(); ++i) position.emplace(within[i], static_cast<uint32_t>(i));
    std::vector<uint32_t> needed;
    for (const State& state : kept) {
      for (uint32_t id = state.parent; id >= recording.first_step; id = path_[id].parent) needed.push_back(id);
    }
    std::sort(needed.begin(), needed.end());
    needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
    const auto relative = [&](const auto& node) {
      const int64_t parent = node.parent < recording.first_step
                                 ? -1 - static_cast<int64_t>(node.parent - recording.first_id)
                                 : std::lower_bound(needed.begin(), needed.end(), node.parent) - needed.begin();
      return SegmentOutcome::Step{node.cost - recording.cost, static_cast<int64_t>(node.partitions) - recording.partitions, parent,
                                  position.at(node.candidate), node.variant};
    };
    SegmentOutcome outcome;
    for (const uint32_t id : needed) outcome.steps.push_back(relative(path_[id]));
    for (const State& state : kept) {
      const Frontier::TensorState* tensors = frontier.TensorsOf(state);
      outcome.last.push_back({relative(state), state.last_backend, {tensors, tensors + frontier.open().size()}});
    }
    outcomes_.emplace(recording.fingerprint, std::move(outcome));
  }

  void ExtendBy(size_t c, Place& place, const Frontier& from, const std::vector<State>& kept, uint32_t first_id) {
    const SearchCandidate& candidate = problem_.candidates[c];
    Frontier& to = place.frontier;
    const Extension extension(tables_, c, from, to);
    for (size_t v = 0; v < candidate.variants.size(); ++v) {
      if (!tables_.VariantsOf(c)[v].is_usable) continue;
      for (size_t k = 0; k < kept.size(); ++k) {
        const State& before = kept[k];
        State after{before.cost + candidate.variants[v].cost,
                    first_id + static_cast<uint32_t>(k),
                    static_cast<uint32_t>(c),
                    static_cast<uint32_t>(v),
                    before.partitions,
                    before.last_backend,
                    0};
        if (candidate.is_partition) {
          if (before.last_backend != SearchTables::kNobody && !problem_.transition.empty())
            after.cost += problem_.transition[before.last_backend][candidate.backend];
          after.last_backend = static_cast<uint32_t>(candidate.backend);
          ++after.partitions;
        }
        if (!to.MayMatter(after.cost)) continue;
        if (place.bound && place.bound->LeastOfAny(after.cost, after.last_backend) > bound_->cutoff) continue;
        after.cost += extension.Apply(v, from.TensorsOf(before), scratch_);
        if (after.cost.IsKnown() && to.MayMatter(after.cost)) to.Add(after, scratch_.result.data(), precedes_);
      }
    }
  }

  /// `set` is its number in the graph, where there is a bound.
  Place& AddPlace(Covered covered, std::vector<size_t> open, size_t set) {
    std::vector<std::unique_ptr<Place>>& layer = layers_[covered.next];
    layer.push_back(std::make_unique<Place>(Place{Frontier(tables_, std::move(covered), std::move(open)), std::nullopt}));
    Place& place = *layer.back();
    if (bound_) place.bound.emplace(bound_->relaxation, *open_, place.frontier, set);
    return place;
  }

  Place& PlaceAt(Covered covered, const Frontier& from, size_t c) {
    std::vector<std::unique_ptr<Place>>& layer = layers_[covered.next];
    const auto [at, is_new] = by_tail_[covered.next].try_emplace(covered.tail, layer.size());
    if (!is_new) return *layer[at->second];
    std::vector<size_t> open = OpenAfter(tables_, from.open(), problem_.candidates[c], covered);
    return AddPlace(std::move(covered), std::move(open), 0);
  }

  Place& PlaceAt(const CoverGraph::Edge& edge, const Frontier& from) {
    Place*& place = place_of_[edge.to];
    if (!place) {
      const Covered& covered = bound_->graph.at(edge.to);
      place = &AddPlace(covered, OpenAfter(tables_, from.open(), problem_.candidates[edge.candidate], covered), edge.to);
    }
    return *place;
  }

  [[nodiscard]] bool Precedes(const State& a, const State& b) const {
    if (a.cost != b.cost) return a.cost < b.cost;
    if (a.partitions != b.partitions) return a.partitions < b.partitions;
    return PrecedesByPath(a, b);
  }

  // The declared preference among equal prices; called on exact ties only. Two ways that tie all along a deep model meet in every covered
  // set on the way. What is preferred there is kept, so that nobody walks back further than to the last set where they met.
  [[nodiscard]] bool PrecedesByPath(const State& a, const State& b) const {
    left_path_.assign(1, {a.candidate, a.variant});
    right_path_.assign(1, {b.candidate, b.variant});
    meetings_.assign(1, {kNoParent, kNoParent, 0, 0});
    Preference preference;
    uint32_t x = a.parent;
    uint32_t y = b.parent;
    while (x != y) {
      if (DoMeet(x, y)) {
        if (const std::optional<Preference> known = KnownPreference(x, y)) {
          preference = *known;
          break;
        }
        meetings_.push_back({x, y, left_path_.size(), right_path_.size()});
      }
      uint32_t& later = y == kNoParent || (x != kNoParent && x > y) ? x : y;
      (&later == &x ? left_path_ : right_path_).push_back({path_[later].candidate, path_[later].variant});
      later = path_[later].parent;
    }
    if (x == kNoParent || x < (x == y ? recording_.first_id : recording_.first_step)) recording_.is_whole = false;
    for (; !meetings_.empty(); meetings_.pop_back()) {
      const Meeting& meeting = meetings_.back();
      preference = PreferenceOf(problem_, TakeBehind(left_path_, meeting.left), TakeBehind(right_path_, meeting.right), preference);
      left_path_.resize(meeting.left);
      right_path_.resize(meeting.right);
      if (meeting.x != kNoParent) Keep(meeting.x, meeting.y, preference);
    }
    return preference.order < 0;
  }

  /// Where two ways cover the same set in as many partitions, and how many choices were made behind that.
  struct Meeting {
    uint32_t x, y;
    size_t left, right;
  };

  [[nodiscard]] bool DoMeet(uint32_t x, uint32_t y) const {
    return x != kNoParent && y != kNoParent && path_[x].set != 0 && path_[x].set == path_[y].set &&
           path_[x].partitions == path_[y].partitions;
  }

  static uint64_t PairOf(uint32_t x, uint32_t y) { return uint64_t{std::min(x, y)} << 32 | std::max(x, y); }

  [[nodiscard]] std::optional<Preference> KnownPreference(uint32_t x, uint32_t y) const {
    const auto at = preferences_.find(PairOf(x, y));
    if (at == preferences_.end()) return std::nullopt;
    return x < y ? at->second : Preference{at->second.reason, 0 <=> at->second.order};
  }

  void Keep(uint32_t x, uint32_t y, const Preference& preference) const {
    preferences_.emplace(PairOf(x, y), x < y ? preference : Preference{preference.reason, 0 <=> preference.order});
  }

  // In the order in which they were made; walking back gives the last one first.
  static std::span<const SearchChoice> TakeBehind(std::vector<SearchChoice>& path, size_t count) {
    std::reverse(path.begin() + static_cast<std::ptrdiff_t>(count), path.end());
    return std::span(path).subspan(count);
  }

  SearchResult Finish(Frontier& frontier) {
    Cost cut = Cost::Invalid();
    const State best = frontier.TakeBest(precedes_, 1, cut).front();
    SearchResult result{best.cost, {{best.candidate, best.variant}}, best.partitions, std::min(best.cost, dropped_), expanded_ + 1};
    if (!tables_.IsWhole()) result.lower_bound = std::min(result.lower_bound, tables_.LeastFrom(0));
    result.is_proven = result.lower_bound == result.cost;
    for (uint32_t id = best.parent; path_[id].parent != kNoParent; id = path_[id].parent)
      result.choices.push_back({path_[id].candidate, path_[id].variant});
    std::reverse(result.choices.begin(), result.choices.end());
    return result;
  }

  /// Best first.
  struct PrecedesInSweep {
    const Sweeper& sweep;
    bool operator()(const State& a, const State& b) const { return sweep.Precedes(a, b); }
  };

  const SearchProblem& problem_;
  const SweepLimits& limits_;
  const bool reuses_segments_;
  const SweepBound* bound_;
  const PrecedesInSweep precedes_{*this};
  const SearchTables& tables_;
  std::optional<OpenTensors> open_;                          // where there is a bound
  std::vector<Place*> place_of_;                             // by covered set of its graph; none yet, or no more
  const std::optional<Segments> segments_;                   // where they are of use
  std::vector<std::vector<std::unique_ptr<Place>>> layers_;  // by first uncovered node
  std::unordered_map<size_t, std::unordered_map<IndexSet, size_t>> by_tail_;
  std::vector<PathNode> path_;
  uint32_t set_ = 0;  // the last one that was numbered
  Extension::Scratch scratch_;
  SegmentOutcomes outcomes_;
  mutable Recording recording_;                  // mutable for the tie that spoils it
  mutable std::vector<SearchChoice> left_path_;  // scratch of PrecedesByPath
  mutable std::vector<SearchChoice> right_path_;
  mutable std::vector<Meeting> meetings_;
  mutable std::unordered_map<uint64_t, Preference> preferences_;  // of pairs that met
  Cost dropped_ = Cost::Invalid();
  size_t expanded_ = 0;
  bool gave_up_ = false;
};

}  // namespace

SweepAnswer Sweep(const SearchTables& tables, const SweepLimits& limits, bool reuse_segments, const SweepBound* bound) {
  return Sweeper(tables, limits, reuse_segments, bound).Run();
}

}  // namespace collage
