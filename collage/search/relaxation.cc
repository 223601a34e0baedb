#include "collage/search/relaxation.h"

#include <algorithm>
#include <cmath>

namespace collage {

Relaxation::Relaxation(const SearchTables& tables, const CoverGraph& graph)
    : tables_(tables), graph_(graph), places_(tables.problem().backend_count + 1) {
  const SearchProblem& problem = tables.problem();
  size_t promises = 0;
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    first_promise_.push_back(promises);
    promises += tables.ConsumersOf(t).size() * tables.LayoutsOf(t).size();
    may_skip_.emplace_back(tables.ConsumersOf(t).size(), false);
  }
  promises_.assign(promises, 0);
  reads_.resize(problem.candidates.size());
  makes_.resize(problem.candidates.size());
  size_t variants = 0;
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    first_variant_.push_back(variants);
    variants += problem.candidates[c].variants.size();
    AddTerms(c);
  }
  price_.resize(variants);
  cheapest_.resize(problem.candidates.size());
  cheapest_variant_.resize(problem.candidates.size());
  to_go_.resize(graph.size() * places_);
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    if (problem.tensors[t].producer != SearchTensor::kOutside) continue;
    std::vector<uint32_t> all(tables.ConsumersOf(t).size());
    for (uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    outside_groups_.push_back(GroupOf(t, std::move(all)));
  }
  for (Group& group : groups_) group.side = SideOf(group);
}

void Relaxation::AddTerms(size_t c) {
  const SearchCandidate& candidate = tables_.problem().candidates[c];
  if (candidate.inside.Empty()) return;
  candidate.inside.ForEach([&](size_t node) {
    for (const size_t t : tables_.ProducedBy(node)) {
      const auto output = std::find(candidate.outputs.begin(), candidate.outputs.end(), t);
      std::vector<uint32_t> outside;
      const std::vector<size_t>& consumers = tables_.ConsumersOf(t);
      for (size_t i = 0; i < consumers.size(); ++i) {
        if (!candidate.inside.Contains(consumers[i])) outside.push_back(static_cast<uint32_t>(i));
      }
      if (outside.empty() && output == candidate.outputs.end()) continue;
      makes_[c].push_back({GroupOf(t, std::move(outside)),
                           output == candidate.outputs.end() ? -1 : static_cast<int32_t>(output - candidate.outputs.begin())});
    }
    for (const size_t t : tables_.ConsumedBy(node)) {
      const std::vector<size_t>& consumers = tables_.ConsumersOf(t);
      const auto consumer = static_cast<uint32_t>(std::lower_bound(consumers.begin(), consumers.end(), node) - consumers.begin());
      const auto input = std::find(candidate.inputs.begin(), candidate.inputs.end(), t);
      if (input != candidate.inputs.end()) {
        reads_[c].push_back({static_cast<uint32_t>(input - candidate.inputs.begin()), static_cast<uint32_t>(t), consumer});
      } else {
        const size_t producer = tables_.problem().tensors[t].producer;
        if (producer == SearchTensor::kOutside || !candidate.inside.Contains(producer)) may_skip_[t][consumer] = true;
      }
    }
  });
}

uint32_t Relaxation::GroupOf(size_t tensor, std::vector<uint32_t> consumers) {
  auto& known = group_of_[{tensor, consumers}];
  if (known == 0) {
    groups_.push_back({static_cast<uint32_t>(tensor), TensorSide(tables_, tensor, false, {}), std::move(consumers),
                       std::vector<Picoseconds>(tables_.LayoutsOf(tensor).size(), kNever)});
    known = static_cast<uint32_t>(groups_.size());
  }
  return known - 1;
}

std::vector<TensorSide::Consumer> Relaxation::Consumers(size_t tensor, const std::vector<uint32_t>& positions) const {
  std::vector<TensorSide::Consumer> consumers;
  for (const uint32_t i : positions)
    consumers.push_back({promises_.data() + PlaceOf(tensor, i), tables_.WishOf(tensor, i), may_skip_[tensor][i]});
  return consumers;
}

TensorSide Relaxation::SideOf(const Group& group) const {
  return {tables_, group.tensor, tables_.problem().tensors[group.tensor].is_result, Consumers(group.tensor, group.consumers)};
}

void Relaxation::Reprice() {
  for (Group& group : groups_) group.side = SideOf(group);
}

void Relaxation::ChargeGroup(Group& group) {
  group.side.Update();
  for (size_t layout = 0; layout < group.charge.size(); ++layout) {
    if (tables_.MadeIn(group.tensor) & LayoutBit(layout)) group.charge[layout] = group.side.Least(layout, 0);
  }
}

void Relaxation::PriceCandidate(size_t c) {
  const SearchCandidate& candidate = tables_.problem().candidates[c];
  cheapest_[c] = kNever;
  for (size_t v = 0; v < candidate.variants.size(); ++v) {
    const SearchTables::Variant& variant = tables_.VariantsOf(c)[v];
    Picoseconds& price = price_[first_variant_[c] + v];
    price = kNever;
    if (!variant.is_usable) continue;
    Picoseconds total = ToPicoseconds(candidate.variants[v].cost);
    for (const Read& read : reads_[c]) total += promises_[PlaceOf(read.tensor, read.consumer) + variant.input_layouts[read.input]];
    bool is_possible = true;
    for (const Make& make : makes_[c]) {
      const Picoseconds charge = groups_[make.group].charge[make.output < 0 ? 0 : variant.output_layouts[static_cast<size_t>(make.output)]];
      is_possible = is_possible && charge < kNever;
      total += charge;
    }
    if (!is_possible) continue;
    price = total;
    if (price < cheapest_[c]) cheapest_[c] = price, cheapest_variant_[c] = static_cast<uint32_t>(v);
  }
}

Picoseconds Relaxation::Transition(size_t from, size_t to) const {
  const auto& transition = tables_.problem().transition;
  return from + 1 == places_ || transition.empty() ? 0 : ToPicoseconds(transition[from][to]);
}

void Relaxation::PriceSet(size_t set) {
  Picoseconds* const to_go = to_go_.data() + set * places_;
  if (graph_.at(set).next == tables_.problem().node_count) {
    std::fill_n(to_go, places_, 0);
    return;
  }
  std::fill_n(to_go, places_, kNever);
  std::vector<Picoseconds>& by_backend = scratch_;
  by_backend.assign(places_, kNever);
  for (const CoverGraph::Edge& edge : graph_.EdgesOf(set)) {
    const Picoseconds price = cheapest_[edge.candidate];
    if (price >= kNever) continue;
    const SearchCandidate& candidate = tables_.problem().candidates[edge.candidate];
    const Picoseconds* const after = to_go_.data() + edge.to * places_;
    if (candidate.is_partition) {
      if (after[candidate.backend] < kNever)
        by_backend[candidate.backend] = std::min(by_backend[candidate.backend], price + after[candidate.backend]);
      continue;
    }
    for (size_t last = 0; last < places_; ++last) {
      if (after[last] < kNever) to_go[last] = std::min(to_go[last], price + after[last]);
    }
  }
  for (size_t backend = 0; backend + 1 < places_; ++backend) {
    if (by_backend[backend] >= kNever) continue;
    for (size_t last = 0; last < places_; ++last) {
      const Picoseconds transition = Transition(last, backend);
      if (transition < kNever) to_go[last] = std::min(to_go[last], by_backend[backend] + transition);
    }
  }
}

Cost Relaxation::Evaluate() {
  for (Group& group : groups_) ChargeGroup(group);
  for (size_t c = 0; c < cheapest_.size(); ++c) PriceCandidate(c);
  for (size_t set = graph_.size(); set-- > 0;) PriceSet(set);
  constant_ = 0;
  for (const uint32_t group : outside_groups_) constant_ += groups_[group].charge[0];
  const Picoseconds least = to_go_[places_ - 1];
  return ToCost(least >= kNever || constant_ >= kNever ? kNever : least + constant_);
}

void Relaxation::Start() {
  const std::vector<Picoseconds> before = promises_;
  const Cost bound_before = Evaluate();
  Choose();
  const Cost bound = Evaluate();
  if (bound.IsKnown() && bound < bound_before) promises_ = before;
  level_ = 0;
}

void Relaxation::Choose() {
  std::fill(promises_.begin(), promises_.end(), 0);
  size_t end = graph_.size();
  while (end > 0) {
    size_t begin = end - 1;
    const size_t node = graph_.at(begin).next;
    while (begin > 0 && graph_.at(begin - 1).next == node) --begin;
    if (node < tables_.problem().node_count) PromiseAt(node, begin, end);
    for (size_t set = begin; set < end; ++set) PriceSet(set);
    end = begin;
  }
}

/// Of covered sets from `begin` on and before `end`, which all lack `node` first.
void Relaxation::PromiseAt(size_t node, size_t begin, size_t end) {
  const std::vector<size_t>& starting = tables_.StartingAt(node);
  for (const size_t c : starting) {
    for (const Make& make : makes_[c]) ChargeGroup(groups_[make.group]);
    PriceCandidate(c);
  }
  size_t sharing = 0;
  for (const size_t t : tables_.ConsumedBy(node)) sharing += (tables_.AllWishes(t) & (tables_.AllWishes(t) - 1)) != 0 ? 1 : 0;
  for (const size_t t : tables_.ConsumedBy(node)) {
    const std::vector<size_t>& consumers = tables_.ConsumersOf(t);
    const auto consumer = static_cast<size_t>(std::lower_bound(consumers.begin(), consumers.end(), node) - consumers.begin());
    const LayoutMask wish = tables_.WishOf(t, consumer);
    if ((wish & (wish - 1)) == 0) continue;
    std::vector<Picoseconds> least(tables_.LayoutsOf(t).size(), kNever);
    for (size_t set = begin; set < end; ++set) {
      Picoseconds best = kNever;
      std::vector<Picoseconds> here(least.size(), kNever);
      for (const CoverGraph::Edge& edge : graph_.EdgesOf(set)) {
        const size_t c = edge.candidate;
        const SearchCandidate& candidate = tables_.problem().candidates[c];
        const Picoseconds* const after = to_go_.data() + edge.to * places_;
        const Picoseconds rest = candidate.is_partition ? after[candidate.backend] : *std::min_element(after, after + places_);
        if (cheapest_[c] >= kNever || rest >= kNever) continue;
        best = std::min(best, cheapest_[c] + rest);
        const auto input = std::find(candidate.inputs.begin(), candidate.inputs.end(), t);
        if (input == candidate.inputs.end()) continue;
        for (size_t v = 0; v < candidate.variants.size(); ++v) {
          if (price_[first_variant_[c] + v] >= kNever) continue;
          Picoseconds& with = here[tables_.VariantsOf(c)[v].input_layouts[static_cast<size_t>(input - candidate.inputs.begin())]];
          with = std::min(with, price_[first_variant_[c] + v] + rest);
        }
      }
      for (size_t layout = 0; layout < least.size(); ++layout) {
        if (here[layout] < kNever) least[layout] = std::min(least[layout], here[layout] - best);
      }
    }
    // What differs by more than a conversion into the cheapest is read in the cheapest.
    const auto cheapest = static_cast<size_t>(std::min_element(least.begin(), least.end()) - least.begin());
    if (least[cheapest] >= kNever) continue;
    const Picoseconds worst = std::min(kNever / 4, ToPicoseconds(tables_.WorstConversion(t, cheapest)));
    Picoseconds dearest = 0;
    for (const Picoseconds one : least) dearest = std::max(dearest, std::min(one, least[cheapest] + worst));
    for (size_t layout = 0; layout < least.size(); ++layout)
      promises_[PlaceOf(t, consumer) + layout] = std::max(Picoseconds{0}, dearest - least[layout]) / static_cast<Picoseconds>(sharing);
  }
  for (const size_t c : starting) PriceCandidate(c);
}

std::vector<SearchChoice> Relaxation::Path() const {
  std::vector<SearchChoice> path;
  size_t set = 0;
  size_t last = places_ - 1;
  while (graph_.at(set).next != tables_.problem().node_count) {
    const Picoseconds expected = to_go_[set * places_ + last];
    for (const CoverGraph::Edge& edge : graph_.EdgesOf(set)) {
      const Picoseconds price = cheapest_[edge.candidate];
      if (price >= kNever) continue;
      const SearchCandidate& candidate = tables_.problem().candidates[edge.candidate];
      const size_t next = candidate.is_partition ? candidate.backend : last;
      const Picoseconds transition = candidate.is_partition ? Transition(last, candidate.backend) : 0;
      const Picoseconds rest = to_go_[edge.to * places_ + next];
      if (transition >= kNever || rest >= kNever || price + transition + rest != expected) continue;
      path.push_back({edge.candidate, cheapest_variant_[edge.candidate]});
      set = edge.to;
      last = next;
      break;
    }
  }
  return path;
}

void Relaxation::FindDirection(const std::vector<SearchChoice>& path, std::vector<double>& direction) const {
  std::fill(direction.begin(), direction.end(), 0.0);
  const auto take = [&](const Group& group, size_t layout) {
    group.side.ForEachTaken(layout, [&](size_t i, size_t taken) { direction[PlaceOf(group.tensor, group.consumers[i]) + taken] -= 1; });
  };
  for (const SearchChoice& choice : path) {
    const SearchTables::Variant& variant = tables_.VariantsOf(choice.candidate)[choice.variant];
    for (const Read& read : reads_[choice.candidate])
      direction[PlaceOf(read.tensor, read.consumer) + variant.input_layouts[read.input]] += 1;
    for (const Make& make : makes_[choice.candidate])
      take(groups_[make.group], make.output < 0 ? 0 : variant.output_layouts[static_cast<size_t>(make.output)]);
  }
  for (const uint32_t group : outside_groups_) take(groups_[group], 0);
}

Cost Relaxation::Improve(size_t most_steps, Cost at_least, const std::function<Cost(const std::vector<SearchChoice>& path)>& visit) {
  // Steps aim at a level above the best bound so far, which falls while they miss it (the path-based target level of Brannlund, 1993).
  // Tried on DenseNet-121 and NASNet-A, whose covers tie while bounds stand for prices: shorter memories zigzag between ties.
  constexpr double kFirstLevel = 0.003;
  constexpr size_t kMostInVain = 10;
  constexpr double kKeptCourse = 0.8;
  Cost best = Evaluate();
  if (!best.IsKnown()) return best;
  std::vector<Picoseconds> best_promises = promises_;
  std::vector<double> direction(promises_.size());
  std::vector<double> course(promises_.size(), 0.0);  // with what is left of earlier directions, which damps zigzags
  if (level_ < 1) level_ = kFirstLevel * static_cast<double>(ToPicoseconds(best));
  double level = std::max(level_, static_cast<double>(ToPicoseconds(at_least) - ToPicoseconds(best)));
  size_t in_vain = 0;
  Cost now = best;
  for (size_t step = 0; step < most_steps; ++step) {
    const std::vector<SearchChoice> path = Path();
    const Cost target = visit(path);
    if (best >= target) break;
    level = std::min(level, static_cast<double>(ToPicoseconds(target) - ToPicoseconds(best)));
    FindDirection(path, direction);
    double square = 0;
    for (size_t i = 0; i < course.size(); ++i) {
      course[i] = direction[i] + kKeptCourse * course[i];
      square += course[i] * course[i];
    }
    if (square == 0) break;  // candidates and tensors agree: the cover costs what the bound says
    const double length = (static_cast<double>(ToPicoseconds(best) - ToPicoseconds(now)) + level) / square;
    for (size_t i = 0; i < course.size(); ++i) {
      if (course[i] != 0) promises_[i] += std::llround(length * course[i]);
    }
    now = Evaluate();
    if (now > best) {
      if (static_cast<double>(ToPicoseconds(now) - ToPicoseconds(best)) > level / 2) level *= 2;
      best = now;
      best_promises = promises_;
      in_vain = 0;
    } else if (++in_vain > kMostInVain) {
      in_vain = 0;
      level /= 2;
      promises_ = best_promises;
      std::fill(course.begin(), course.end(), 0.0);
      now = Evaluate();
    }
    if (level < 1) break;
  }
  level_ = level;
  promises_ = best_promises;
  Evaluate();
  return best;
}

void Relaxation::FindLeastWith() {
  with_.assign(price_.size(), kNever);
  from_start_.assign(to_go_.size(), kNever);
  from_start_[places_ - 1] = constant_;
  for (size_t set = 0; set < graph_.size(); ++set) {
    const Picoseconds* const before = from_start_.data() + set * places_;
    for (const CoverGraph::Edge& edge : graph_.EdgesOf(set)) {
      const size_t c = edge.candidate;
      if (cheapest_[c] >= kNever) continue;
      const SearchCandidate& candidate = tables_.problem().candidates[c];
      Picoseconds* const after = from_start_.data() + edge.to * places_;
      const Picoseconds* const rest = to_go_.data() + edge.to * places_;
      Picoseconds around = kNever;  // of the cover but for the candidate itself
      for (size_t last = 0; last < places_; ++last) {
        if (before[last] >= kNever) continue;
        const size_t next = candidate.is_partition ? candidate.backend : last;
        const Picoseconds transition = candidate.is_partition ? Transition(last, candidate.backend) : 0;
        if (transition >= kNever) continue;
        after[next] = std::min(after[next], before[last] + transition + cheapest_[c]);
        if (rest[next] < kNever) around = std::min(around, before[last] + transition + rest[next]);
      }
      if (around >= kNever) continue;
      for (size_t i = first_variant_[c]; i < first_variant_[c] + candidate.variants.size(); ++i) {
        if (price_[i] < kNever) with_[i] = std::min(with_[i], around + price_[i]);
      }
    }
  }
}

TensorSide Relaxation::SideOf(size_t tensor, const Covered& covered) const {
  std::vector<uint32_t> outside;
  const std::vector<size_t>& consumers = tables_.ConsumersOf(tensor);
  for (size_t i = 0; i < consumers.size(); ++i) {
    if (!covered.Contains(consumers[i])) outside.push_back(static_cast<uint32_t>(i));
  }
  return {tables_, tensor, false, Consumers(tensor, outside)};
}

Picoseconds Relaxation::PromisedBefore(size_t tensor, const Covered& covered, LayoutMask demanded) const {
  Picoseconds total = 0;
  const std::vector<size_t>& consumers = tables_.ConsumersOf(tensor);
  for (size_t i = 0; i < consumers.size(); ++i) {
    if (!covered.Contains(consumers[i])) continue;
    Picoseconds least = may_skip_[tensor][i] ? 0 : kNever;
    for (LayoutMask layouts = tables_.WishOf(tensor, i) & demanded; layouts != 0; layouts &= layouts - 1)
      least = std::min(least, promises_[PlaceOf(tensor, i) + static_cast<size_t>(__builtin_ctz(layouts))]);
    if (least < kNever) total += least;
  }
  return total;
}

}  // namespace collage
