#include "collage/search/cover_paths.h"

#include <algorithm>

namespace collage {

CoverPaths::CoverPaths(const SearchProblem& problem, const CoverGraph& graph)
    : problem_(problem),
      graph_(graph),
      places_(problem.backend_count + 1),
      first_edge_(graph.size(), 0),
      edges_of_(graph.size(), 0),
      to_go_(graph.size() * places_, kNever),
      by_backend_(places_) {
  for (const SearchCandidate& candidate : problem.candidates)
    place_of_.push_back(static_cast<uint32_t>(candidate.is_partition ? candidate.backend : places_));
}

void CoverPaths::Use(const std::vector<bool>& may_be_used) {
  transition_.assign(places_ * places_, 0);
  worst_to_.assign(places_, 0);
  worst_from_.assign(places_, 0);
  for (size_t from = 0; from + 1 < places_ && !problem_.transition.empty(); ++from) {
    for (size_t to = 0; to + 1 < places_; ++to) {
      const Picoseconds one = ToPicoseconds(problem_.transition[from][to]);
      transition_[from * places_ + to] = one;
      worst_to_[to] = std::max(worst_to_[to], one);
      worst_from_[from] = std::max(worst_from_[from], one);
    }
  }
  std::vector<bool> is_reached(graph_.size(), false);
  is_reached[0] = true;
  sets_.clear();
  edges_.clear();
  std::fill(edges_of_.begin(), edges_of_.end(), 0);
  std::fill(to_go_.begin(), to_go_.end(), kNever);
  for (uint32_t set = 0; set < graph_.size(); ++set) {
    if (!is_reached[set]) continue;
    sets_.push_back(set);
    first_edge_[set] = static_cast<uint32_t>(edges_.size());
    for (const CoverGraph::Edge& edge : graph_.EdgesOf(set)) {
      if (!may_be_used[edge.candidate]) continue;
      edges_.push_back(edge);
      is_reached[edge.to] = true;
    }
    edges_of_[set] = static_cast<uint32_t>(edges_.size()) - first_edge_[set];
  }
}

void CoverPaths::FindToGo(const std::vector<Picoseconds>& prices) {
  for (size_t i = sets_.size(); i-- > 0;) FindToGoAfter(sets_[i], prices);
}

void CoverPaths::FindToGoAfter(size_t set, const std::vector<Picoseconds>& prices) {
  Picoseconds* const to_go = to_go_.data() + set * places_;
  if (graph_.at(set).next == problem_.node_count) {
    std::fill_n(to_go, places_, 0);
    return;
  }
  std::fill_n(to_go, places_, kNever);
  std::fill(by_backend_.begin(), by_backend_.end(), kNever);
  for (const CoverGraph::Edge& edge : EdgesOf(set)) {
    const Picoseconds price = prices[edge.candidate];
    if (price >= kNever) continue;
    const Picoseconds* const after = to_go_.data() + edge.to * places_;
    const uint32_t place = place_of_[edge.candidate];
    if (place < places_) {
      if (after[place] < kNever) by_backend_[place] = std::min(by_backend_[place], price + after[place]);
      continue;
    }
    for (size_t last = 0; last < places_; ++last) {
      if (after[last] < kNever) to_go[last] = std::min(to_go[last], price + after[last]);
    }
  }
  const Picoseconds most = LeastWithWorst(by_backend_.data(), worst_to_);
  for (size_t backend = 0; backend + 1 < places_; ++backend) {
    if (by_backend_[backend] >= kNever || by_backend_[backend] > most) continue;
    for (size_t last = 0; last < places_; ++last) {
      const Picoseconds transition = Transition(last, backend);
      if (transition < kNever) to_go[last] = std::min(to_go[last], by_backend_[backend] + transition);
    }
  }
}

Picoseconds CoverPaths::LeastWithWorst(const Picoseconds* by_backend, const std::vector<Picoseconds>& worst) const {
  Picoseconds least = kNever;
  for (size_t backend = 0; backend < places_; ++backend) {
    if (by_backend[backend] < kNever && worst[backend] < kNever) least = std::min(least, by_backend[backend] + worst[backend]);
  }
  return least;
}

std::vector<uint32_t> CoverPaths::Path(const std::vector<Picoseconds>& prices) const {
  std::vector<uint32_t> path;
  size_t set = 0;
  size_t last = places_ - 1;
  while (graph_.at(set).next != problem_.node_count) {
    const Picoseconds expected = to_go_[set * places_ + last];
    for (const CoverGraph::Edge& edge : EdgesOf(set)) {
      const Picoseconds price = prices[edge.candidate];
      if (price >= kNever) continue;
      const bool is_partition = place_of_[edge.candidate] < places_;
      const size_t next = is_partition ? place_of_[edge.candidate] : last;
      const Picoseconds transition = is_partition ? Transition(last, next) : 0;
      const Picoseconds rest = to_go_[edge.to * places_ + next];
      if (transition >= kNever || rest >= kNever || price + transition + rest != expected) continue;
      path.push_back(edge.candidate);
      set = edge.to;
      last = next;
      break;
    }
  }
  return path;
}

std::vector<Picoseconds> CoverPaths::AroundEach(const std::vector<Picoseconds>& prices) {
  std::vector<Picoseconds> around(problem_.candidates.size(), kNever);
  from_start_.assign(to_go_.size(), kNever);
  from_start_[places_ - 1] = 0;
  std::vector<Picoseconds>& arrived = by_backend_;
  for (const uint32_t set : sets_) {
    const Picoseconds* const before = from_start_.data() + set * places_;
    std::fill(arrived.begin(), arrived.end(), kNever);
    const Picoseconds most = LeastWithWorst(before, worst_from_);
    for (size_t last = 0; last < places_; ++last) {
      if (before[last] >= kNever || before[last] > most) continue;
      for (size_t next = 0; next + 1 < places_; ++next) {
        const Picoseconds transition = Transition(last, next);
        if (transition < kNever) arrived[next] = std::min(arrived[next], before[last] + transition);
      }
    }
    for (const CoverGraph::Edge& edge : EdgesOf(set)) {
      const size_t c = edge.candidate;
      if (prices[c] >= kNever) continue;
      Picoseconds* const after = from_start_.data() + edge.to * places_;
      const Picoseconds* const rest = to_go_.data() + edge.to * places_;
      const auto reach = [&](size_t next, Picoseconds so_far) {
        if (so_far >= kNever) return;
        after[next] = std::min(after[next], so_far + prices[c]);
        if (rest[next] < kNever) around[c] = std::min(around[c], so_far + rest[next]);
      };
      if (place_of_[c] < places_) {
        reach(place_of_[c], arrived[place_of_[c]]);
      } else {
        for (size_t last = 0; last < places_; ++last) reach(last, before[last]);
      }
    }
  }
  return around;
}

}  // namespace collage
