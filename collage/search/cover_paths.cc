#include "collage/search/cover_paths.h"

#include <unordered_map>

namespace collage {

CoverPaths::CoverPaths(const SearchProblem& problem, const CoverGraph& graph)
    : problem_(problem),
      graph_(graph),
      places_(problem.backend_count + 1),
      stride_((places_ + kRowUnit - 1) / kRowUnit * kRowUnit),
      loops_(LoopsFor(stride_)),
      first_edge_(graph.size(), 0),
      edges_of_(graph.size(), 0),
      first_step_(graph.size(), 0),
      steps_of_(graph.size(), 0),
      to_go_(graph.size() * stride_, kNever) {
  std::vector<uint32_t> order;
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    const SearchCandidate& candidate = problem.candidates[c];
    place_of_.push_back(static_cast<uint32_t>(candidate.is_partition ? candidate.backend : places_ - 1));
    if (!candidate.inside.Empty()) order.push_back(static_cast<uint32_t>(c));
  }
  // As sets are walked, so that what is read together lies together.
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return problem.candidates[a].inside.First() < problem.candidates[b].inside.First(); });
  std::unordered_map<IndexSet, size_t> row_of;
  price_at_.resize(problem.candidates.size());
  for (const uint32_t c : order)
    price_at_[c] = row_of.try_emplace(problem.candidates[c].inside, row_of.size()).first->second * stride_ + place_of_[c];
  price_.assign(row_of.size() * stride_, kNever);
}

void CoverPaths::Use(const std::vector<bool>& may_be_used) {
  const size_t backends = places_ - 1;
  transition_to_.assign(stride_ * stride_, 0);
  transition_from_.assign(stride_ * stride_, 0);
  for (size_t from = 0; from <= backends; ++from) {
    for (size_t to = 0; to < backends && from < backends && !problem_.transition.empty(); ++to)
      transition_to_[to * stride_ + from] = transition_from_[from * stride_ + to] = ToPicoseconds(problem_.transition[from][to]);
    std::fill_n(transition_from_.begin() + static_cast<std::ptrdiff_t>(from * stride_ + backends), stride_ - backends, kNever);
  }
  has_host_ = false;
  std::vector<bool> is_reached(graph_.size(), false);
  is_reached[0] = true;
  std::vector<uint32_t> step_from(price_.size() / stride_, 0);  // by row: the set, and one more, from which it was a step last
  sets_.clear();
  edges_.clear();
  steps_.clear();
  std::fill(edges_of_.begin(), edges_of_.end(), 0);
  std::fill(steps_of_.begin(), steps_of_.end(), 0);
  std::fill(to_go_.begin(), to_go_.end(), kNever);
  std::fill(price_.begin(), price_.end(), kNever);
  for (uint32_t set = 0; set < graph_.size(); ++set) {
    if (!is_reached[set]) continue;
    sets_.push_back(set);
    first_edge_[set] = static_cast<uint32_t>(edges_.size());
    first_step_[set] = static_cast<uint32_t>(steps_.size());
    for (const CoverGraph::Edge& edge : graph_.EdgesOf(set)) {
      if (!may_be_used[edge.candidate]) continue;
      edges_.push_back(edge);
      is_reached[edge.to] = true;
      has_host_ |= place_of_[edge.candidate] == backends;
      const auto row = static_cast<uint32_t>(price_at_[edge.candidate] / stride_);
      if (step_from[row] == set + 1) continue;
      step_from[row] = set + 1;
      steps_.push_back({edge.to, row});
    }
    edges_of_[set] = static_cast<uint32_t>(edges_.size()) - first_edge_[set];
    steps_of_[set] = static_cast<uint32_t>(steps_.size()) - first_step_[set];
  }
}

void CoverPaths::FindToGo() {
  for (size_t i = sets_.size(); i-- > 0;) FindToGoAfter(sets_[i]);
}

void CoverPaths::FindToGoAfter(size_t set) {
  Picoseconds* const to_go = to_go_.data() + set * stride_;
  if (graph_.at(set).next == problem_.node_count) {
    std::fill_n(to_go, places_, 0);
    return;
  }
  const std::span<const PriceStep> steps = StepsOf(set);
  loops_.find_rest(Rows(), steps, to_go_.data(), to_go);
  if (!has_host_) return;
  for (const PriceStep& step : steps) {
    const Picoseconds price = HostPrice(step.row);
    const Picoseconds* const after = ToGo(step.to);
    for (size_t last = 0; last < places_ && price < kNever; ++last) {
      if (after[last] < kNever) to_go[last] = std::min(to_go[last], price + after[last]);
    }
  }
}

std::vector<uint32_t> CoverPaths::Path(const std::vector<Picoseconds>& prices) const {
  std::vector<uint32_t> path;
  size_t set = 0;
  size_t last = places_ - 1;
  while (graph_.at(set).next != problem_.node_count) {
    const Picoseconds expected = to_go_[set * stride_ + last];
    for (const CoverGraph::Edge& edge : EdgesOf(set)) {
      const Picoseconds price = prices[edge.candidate];
      if (price >= kNever) continue;
      const bool is_partition = problem_.candidates[edge.candidate].is_partition;
      const size_t next = is_partition ? place_of_[edge.candidate] : last;
      const Picoseconds transition = is_partition ? transition_to_[next * stride_ + last] : 0;
      const Picoseconds rest = to_go_[edge.to * stride_ + next];
      if (transition >= kNever || rest >= kNever || price + transition + rest != expected) continue;
      path.push_back(edge.candidate);
      set = edge.to;
      last = next;
      break;
    }
  }
  return path;
}

std::vector<Picoseconds> CoverPaths::AroundEach() {
  from_start_.assign(to_go_.size(), kNever);
  from_start_[places_ - 1] = 0;
  around_.assign(price_.size(), kNever);
  for (const uint32_t set : sets_) {
    const Picoseconds* const before = from_start_.data() + set * stride_;
    const std::span<const PriceStep> steps = StepsOf(set);
    loops_.pass_on(Rows(), steps, before, to_go_.data(), from_start_.data(), around_.data());
    for (const PriceStep& step : steps) {
      if (!has_host_ || HostPrice(step.row) >= kNever) continue;
      Picoseconds* const after = from_start_.data() + step.to * stride_;
      Picoseconds& around = around_[step.row * stride_ + places_ - 1];
      for (size_t last = 0; last < places_; ++last) {
        after[last] = std::min(after[last], before[last] + HostPrice(step.row));
        around = std::min(around, before[last] + ToGo(step.to)[last]);
      }
    }
  }
  std::vector<Picoseconds> around;
  around.reserve(price_at_.size());
  for (const size_t at : price_at_) around.push_back(IsNever(around_[at]) ? kNever : around_[at]);
  return around;
}

}  // namespace collage
