#include "collage/search/alternatives.h"

#include <algorithm>
#include <unordered_map>

#include "collage/search/incremental.h"

namespace collage {

/// The stretch as a search problem of its own. Node 0 stands for all that lies before, the last ones for what lies behind or reads a tensor
/// in a layout of its own.
struct Alternatives::Part {
  Stretch stretch;
  SearchProblem problem;
  std::vector<size_t> tensors;                       // numbers in the whole problem
  std::vector<size_t> candidates;                    // those of the stretch, which come first
  std::unordered_map<size_t, size_t> number_of;      // of tensors
  std::unordered_map<size_t, size_t> candidate_for;  // the other way round
  Cost now;                                          // of what is chosen
  // Where a plan can seldom be cut, many decisions share a stretch: what does not hang on the decision is found once.
  IncrementalSearch search;
};

Alternatives::~Alternatives() = default;

Alternatives::Alternatives(const SearchProblem& problem, std::vector<SearchChoice> chosen, const AlternativesOptions& options)
    : problem_(problem), chosen_(std::move(chosen)), options_(options) {
  by_first_.resize(problem_.node_count);
  for (size_t c = 0; c < problem_.candidates.size(); ++c) {
    if (!problem_.candidates[c].inside.Empty()) by_first_[problem_.candidates[c].inside.First()].push_back(c);
  }
  touched_by_.resize(problem_.node_count);
  for (size_t t = 0; t < problem_.tensors.size(); ++t) {
    const SearchTensor& tensor = problem_.tensors[t];
    if (tensor.producer != SearchTensor::kOutside) touched_by_[tensor.producer].push_back(t);
    consumers_.push_back(tensor.consumers);
    std::sort(consumers_.back().begin(), consumers_.back().end());
    for (const size_t consumer : tensor.consumers) touched_by_[consumer].push_back(t);
  }
  FindCuts();
  FindDemands();
}

void Alternatives::FindCuts() {
  const size_t count = problem_.node_count;
  std::vector<int64_t> opened(count + 2, 0);
  for (size_t i = 0; i < chosen_.size(); ++i) {
    ++opened[Candidate(i).inside.First() + 1];
    --opened[Candidate(i).inside.Last() + 1];
  }
  std::vector<bool> is_cut(count + 1);
  int64_t crossing = 0;
  cut_before_.resize(count + 1);
  for (size_t at = 0; at <= count; ++at) {
    crossing += opened[at];
    is_cut[at] = crossing == 0;
    cut_before_[at] = is_cut[at] ? at : cut_before_[at - 1];
  }
  cut_behind_.resize(count + 1);
  for (size_t at = count + 1; at-- > 0;) cut_behind_[at] = is_cut[at] ? at : cut_behind_[at + 1];
}

void Alternatives::FindDemands() {
  given_in_.assign(problem_.tensors.size(), 0);
  demands_.resize(problem_.tensors.size());
  for (size_t i = 0; i < chosen_.size(); ++i) {
    const SearchCandidate& candidate = Candidate(i);
    const SearchVariant& variant = candidate.variants[chosen_[i].variant];
    const size_t first = candidate.inside.First();
    for (size_t out = 0; out < candidate.outputs.size(); ++out) given_in_[candidate.outputs[out]] = variant.output_layouts[out];
    for (size_t in = 0; in < candidate.inputs.size(); ++in) {
      std::vector<Demand>& demands = demands_[candidate.inputs[in]];
      const size_t layout = variant.input_layouts[in];
      const auto known = std::find_if(demands.begin(), demands.end(), [&](const Demand& demand) { return demand.layout == layout; });
      if (known == demands.end()) {
        demands.push_back({layout, first, first});
      } else {
        known->last = first;
      }
    }
  }
}

std::vector<SearchChoice>::const_iterator Alternatives::FirstFrom(size_t node) const {
  return std::lower_bound(chosen_.begin(), chosen_.end(), node, [&](const SearchChoice& choice, size_t begin) {
    return problem_.candidates[choice.candidate].inside.First() < begin;
  });
}

Alternatives::Stretch Alternatives::StretchAround(size_t i) const {
  const size_t first = Candidate(i).inside.First();
  const size_t end = Candidate(i).inside.Last() + 1;
  const size_t before = first - std::min(first, options_.least_beside);
  const size_t behind = end + options_.least_beside;
  const auto between = [&](size_t begin, size_t to) { return Stretch{cut_before_[begin], cut_behind_[std::min(problem_.node_count, to)]}; };
  // Decisions that are neighbours share a stretch: to cut one takes longer than to search it again.
  const size_t step = 2 * options_.least_beside;
  const Stretch shared = between(before - before % step, behind + (step - behind % step) % step);
  return IsSearchable(i, shared) ? shared : between(before, behind);
}

bool Alternatives::IsSearchable(size_t i) const { return IsSearchable(i, StretchAround(i)); }

bool Alternatives::IsSearchable(size_t i, const Stretch& stretch) const {
  return stretch.end - stretch.begin <= Candidate(i).inside.Count() + 2 * options_.most_beside;
}

void Alternatives::AddTensors(const Stretch& stretch, Part& part) const {
  const auto is_within = [&](size_t node) { return node >= stretch.begin && node < stretch.end; };
  for (size_t node = stretch.begin; node < stretch.end; ++node) {
    for (const size_t t : touched_by_[node]) {
      if (!part.number_of.emplace(t, part.tensors.size()).second) continue;
      part.tensors.push_back(t);
      const SearchTensor& tensor = problem_.tensors[t];
      SearchTensor& own = part.problem.tensors.emplace_back();
      own.is_result = tensor.is_result;
      if (tensor.producer != SearchTensor::kOutside) own.producer = is_within(tensor.producer) ? 1 + tensor.producer - stretch.begin : 0;
      const std::vector<size_t>& consumers = consumers_[t];
      const auto from = std::lower_bound(consumers.begin(), consumers.end(), stretch.begin);
      for (auto at = from; at != consumers.end() && *at < stretch.end; ++at) own.consumers.push_back(1 + *at - stretch.begin);
    }
  }
}

void Alternatives::AddOutside(const Stretch& stretch, Part& part) const {
  SearchProblem& problem = part.problem;
  const auto partition = [&](const SearchChoice& choice) { return problem_.candidates[choice.candidate].is_partition; };
  const auto begin = FirstFrom(stretch.begin);
  const auto end = FirstFrom(stretch.end);
  SearchCandidate before{IndexSet({0}), 0, {}, {}, {{Cost(), {}, {}}}, false};
  const auto last = std::find_if(std::make_reverse_iterator(begin), chosen_.rend(), partition);
  if (last != chosen_.rend()) before.is_partition = true, before.backend = problem_.candidates[last->candidate].backend;
  for (size_t t = 0; t < part.tensors.size(); ++t) {
    if (problem.tensors[t].producer != 0) continue;
    before.outputs.push_back(t);
    before.variants[0].output_layouts.push_back(given_in_[part.tensors[t]]);
  }
  problem.candidates.push_back(std::move(before));

  // Whoever reads a tensor outside, one node for each layout of it. The first of these runs next.
  std::vector<SearchCandidate> behind;
  const auto add = [&] {
    behind.push_back({IndexSet({1 + stretch.end - stretch.begin + behind.size()}), 0, {}, {}, {{Cost(), {}, {}}}, false});
  };
  const auto next = std::find_if(end, chosen_.end(), partition);
  add();
  if (next != chosen_.end()) behind[0].is_partition = true, behind[0].backend = problem_.candidates[next->candidate].backend;
  for (size_t t = 0; t < part.tensors.size(); ++t) {
    size_t place = 0;
    for (const Demand& demand : demands_[part.tensors[t]]) {
      if (demand.first >= stretch.begin && demand.last < stretch.end) continue;
      if (place == behind.size()) add();
      behind[place].inputs.push_back(t);
      behind[place].variants[0].input_layouts.push_back(demand.layout);
      problem.tensors[t].consumers.push_back(behind[place].inside.First());
      ++place;
    }
  }
  problem.node_count = 1 + stretch.end - stretch.begin + behind.size();
  for (SearchCandidate& candidate : behind) problem.candidates.push_back(std::move(candidate));
}

void Alternatives::AddCandidates(const Stretch& stretch, Part& part) const {
  for (size_t node = stretch.begin; node < stretch.end; ++node) {
    for (const size_t c : by_first_[node]) {
      const SearchCandidate& whole = problem_.candidates[c];
      if (whole.inside.Last() >= stretch.end) continue;
      SearchCandidate candidate{{}, whole.backend, {}, {}, whole.variants, whole.is_partition};
      whole.inside.ForEach([&](size_t inside) { candidate.inside.Add(1 + inside - stretch.begin); });
      for (const size_t t : whole.inputs) candidate.inputs.push_back(part.number_of.at(t));
      for (const size_t t : whole.outputs) candidate.outputs.push_back(part.number_of.at(t));
      part.candidate_for.emplace(c, part.candidates.size());
      part.candidates.push_back(c);
      part.problem.candidates.push_back(std::move(candidate));
    }
  }
}

void Alternatives::Cut(const Stretch& stretch) {
  part_ = std::make_unique<Part>();
  Part& part = *part_;
  part.stretch = stretch;
  part.problem.layout_count = problem_.layout_count;
  part.problem.backend_count = problem_.backend_count;
  part.problem.transition = problem_.transition;
  AddTensors(stretch, part);
  AddCandidates(stretch, part);
  AddOutside(stretch, part);
  if (problem_.conversion) {
    part.problem.conversion = [this, &part](size_t tensor, size_t from, size_t to) {
      return problem_.conversion(part.tensors[tensor], from, to);
    };
  }
  part.now = PriceOfCover(part.problem, ChosenIn(stretch, part));
}

std::vector<SearchChoice> Alternatives::ChosenIn(const Stretch& stretch, const Part& part) const {
  std::vector<SearchChoice> choices = {{part.candidates.size(), 0}};
  for (auto at = FirstFrom(stretch.begin); at != FirstFrom(stretch.end); ++at)
    choices.push_back({part.candidate_for.at(at->candidate), at->variant});
  for (size_t c = part.candidates.size() + 1; c < part.problem.candidates.size(); ++c) choices.push_back({c, 0});
  return choices;
}

std::optional<Alternatives::Found> Alternatives::BestWithout(size_t i, const std::function<bool(size_t candidate)>& is_excluded) {
  if (!IsSearchable(i)) return std::nullopt;
  const Stretch stretch = StretchAround(i);
  if (!part_ || part_->stretch != stretch) Cut(stretch);
  Part& part = *part_;
  ++searches_;
  searched_nodes_ += part.problem.node_count;
  std::vector<bool> forbidden(part.problem.candidates.size(), false);
  for (size_t c = 0; c < part.candidates.size(); ++c) forbidden[c] = is_excluded(part.candidates[c]);
  const Result<SearchResult> best = part.search.Search(part.problem, forbidden);
  if (!best || !best->cost.IsKnown() || !part.now.IsKnown()) return std::nullopt;
  Found found{best->cost - part.now, {}};
  for (const SearchChoice& choice : best->choices) {
    if (choice.candidate < part.candidates.size()) found.choices.push_back({part.candidates[choice.candidate], choice.variant});
  }
  return found;
}

}  // namespace collage
