#include "collage/search/relaxation.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace collage {

namespace {

// A bound is near a price that is no more than this part of it away.
constexpr Picoseconds kNear = 50;

}  // namespace

Relaxation::Relaxation(const SearchTables& tables, const CoverGraph& graph)
    : tables_(tables), graph_(graph), paths_(tables.problem(), graph) {
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
  for (size_t c = 0; c < problem.candidates.size(); ++c) AddTerms(c);
  price_.resize(tables.variant_count());
  cheapest_.resize(problem.candidates.size());
  cheapest_variant_.resize(problem.candidates.size());
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    if (problem.tensors[t].producer != SearchTensor::kOutside) continue;
    std::vector<uint32_t> all(tables.ConsumersOf(t).size());
    for (uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    outside_groups_.push_back(GroupOf(t, std::move(all)));
  }
  Reprice();
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
    groups_.push_back({static_cast<uint32_t>(tensor), TensorSide(tables_, tensor, false, {}), std::move(consumers), 0, charges_.size()});
    charges_.resize(charges_.size() + tables_.LayoutsOf(tensor).size(), kNever);
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
  const SearchProblem& problem = tables_.problem();
  for (const uint32_t group : used_groups_) groups_[group].made = 0;
  used_groups_.clear();
  used_candidates_.clear();
  priced_.clear();
  terms_.clear();
  first_priced_.assign(1, 0);
  std::fill(price_.begin(), price_.end(), kNever);
  std::fill(cheapest_.begin(), cheapest_.end(), kNever);
  std::vector<bool> may_be_used(problem.candidates.size());
  for (const uint32_t group : outside_groups_) {
    groups_[group].made = LayoutBit(0);
    used_groups_.push_back(group);
  }
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    AddPriced(c);
    may_be_used[c] = priced_.size() > first_priced_.back();
    if (may_be_used[c]) used_candidates_.push_back(static_cast<uint32_t>(c));
    first_priced_.push_back(static_cast<uint32_t>(priced_.size()));
  }
  priced_.push_back({0, static_cast<uint32_t>(terms_.size()), 0});
  for (const uint32_t group : used_groups_) groups_[group].side = SideOf(groups_[group]);
  paths_.Use(may_be_used);
}

void Relaxation::AddPriced(size_t c) {
  const SearchCandidate& candidate = tables_.problem().candidates[c];
  for (size_t v = 0; v < candidate.variants.size(); ++v) {
    const SearchTables::Variant& variant = tables_.VariantsOf(c)[v];
    if (!variant.is_usable) continue;
    priced_.push_back(
        {static_cast<uint32_t>(tables_.VariantAt(c, v)), static_cast<uint32_t>(terms_.size()), ToPicoseconds(candidate.variants[v].cost)});
    for (const Read& read : reads_[c])
      terms_.push_back(static_cast<uint32_t>(PlaceOf(read.tensor, read.consumer) + variant.input_layouts[read.input]));
    for (const Make& make : makes_[c]) {
      Group& group = groups_[make.group];
      const size_t layout = LayoutOf(make, variant);
      if (group.made == 0) used_groups_.push_back(make.group);
      group.made |= LayoutBit(layout);
      terms_.push_back(static_cast<uint32_t>(promises_.size() + group.first_charge + layout));
    }
  }
}

void Relaxation::ChargeGroup(Group& group) {
  group.side.Update();
  for (LayoutMask made = group.made; made != 0; made &= made - 1) {
    const auto layout = static_cast<size_t>(std::countr_zero(made));
    charges_[group.first_charge + layout] = group.side.Least(layout, 0);
  }
}

void Relaxation::PriceCandidate(size_t c) {
  cheapest_[c] = kNever;
  for (size_t i = first_priced_[c]; i < first_priced_[c + 1]; ++i) {
    const Priced& priced = priced_[i];
    Picoseconds total = priced.own;
    for (size_t term = priced.first_term; term < priced_[i + 1].first_term && total < kNever; ++term) {
      const Picoseconds one = terms_[term] < promises_.size() ? promises_[terms_[term]] : charges_[terms_[term] - promises_.size()];
      total = one >= kNever ? kNever : total + one;
    }
    price_[priced.variant] = total;
    if (total < cheapest_[c]) cheapest_[c] = total, cheapest_variant_[c] = static_cast<uint32_t>(priced.variant - tables_.VariantAt(c, 0));
  }
}

Cost Relaxation::Evaluate() {
  for (const uint32_t group : used_groups_) ChargeGroup(groups_[group]);
  for (const uint32_t c : used_candidates_) PriceCandidate(c);
  paths_.TakePrices(used_candidates_, cheapest_);
  paths_.FindToGo();
  constant_ = 0;
  for (const uint32_t group : outside_groups_) constant_ += charges_[groups_[group].first_charge];
  const Picoseconds least = paths_.Least();
  return ToCost(least >= kNever || constant_ >= kNever ? kNever : least + constant_);
}

bool Relaxation::Start(Cost known, const std::function<void()>& see) {
  std::vector<Picoseconds> best_promises = promises_;
  Cost best = Evaluate();
  if (!best.IsKnown()) return false;
  if (see) see();
  const auto keep_better = [&](Cost bound) {
    if (bound <= best) return;
    best = bound;
    best_promises = promises_;
  };
  if (!remembered_.empty()) {
    promises_ = remembered_;
    keep_better(Evaluate());
    if (see) see();
  }
  const bool is_near = known.IsKnown() && known <= best + ToCost(ToPicoseconds(best) / kNear);
  if (!is_near) {
    Choose();
    keep_better(Evaluate());
  }
  promises_ = best_promises;
  level_ = 0;
  return is_near;
}

void Relaxation::Choose() {
  std::fill(promises_.begin(), promises_.end(), 0);
  const std::vector<uint32_t>& sets = paths_.sets();
  for (size_t end = sets.size(); end > 0;) {
    size_t begin = end - 1;
    const size_t node = graph_.at(sets[begin]).next;
    while (begin > 0 && graph_.at(sets[begin - 1]).next == node) --begin;
    const std::span<const uint32_t> here(sets.data() + begin, sets.data() + end);
    if (node < tables_.problem().node_count) {
      PromiseAt(node, here);
      paths_.TakePrices(tables_.StartingAt(node), cheapest_);
    }
    for (const uint32_t set : here) paths_.FindToGoAfter(set);
    end = begin;
  }
}

/// Of covered sets that all lack `node` first.
void Relaxation::PromiseAt(size_t node, std::span<const uint32_t> sets) {
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
    for (const uint32_t set : sets) {
      Picoseconds best = kNever;
      std::vector<Picoseconds> here(least.size(), kNever);
      for (const CoverGraph::Edge& edge : paths_.EdgesOf(set)) {
        const size_t c = edge.candidate;
        const SearchCandidate& candidate = tables_.problem().candidates[c];
        const Picoseconds* const after = paths_.ToGo(edge.to);
        const Picoseconds rest = candidate.is_partition ? after[candidate.backend] : *std::min_element(after, after + paths_.places());
        if (cheapest_[c] >= kNever || rest >= kNever) continue;
        best = std::min(best, cheapest_[c] + rest);
        const auto input = std::find(candidate.inputs.begin(), candidate.inputs.end(), t);
        if (input == candidate.inputs.end()) continue;
        for (size_t v = 0; v < candidate.variants.size(); ++v) {
          if (price_[tables_.VariantAt(c, v)] >= kNever) continue;
          Picoseconds& with = here[tables_.VariantsOf(c)[v].input_layouts[static_cast<size_t>(input - candidate.inputs.begin())]];
          with = std::min(with, price_[tables_.VariantAt(c, v)] + rest);
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
  for (const uint32_t c : paths_.Path(cheapest_)) path.push_back({c, cheapest_variant_[c]});
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
    for (const Make& make : makes_[choice.candidate]) take(groups_[make.group], LayoutOf(make, variant));
  }
  for (const uint32_t group : outside_groups_) take(groups_[group], 0);
}

Cost Relaxation::Improve(size_t most_steps, Cost at_least, const std::function<Target(const std::vector<SearchChoice>& path)>& visit) {
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
  Cost best_at_level = best;
  for (size_t step = 0; step < most_steps; ++step) {
    const std::vector<SearchChoice> path = Path();
    const Target target = visit(path);
    if (best >= std::min(target.known, target.enough)) break;
    level = std::min(level, static_cast<double>(ToPicoseconds(target.known) - ToPicoseconds(best)));
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
      best = now;
      if (static_cast<double>(ToPicoseconds(best) - ToPicoseconds(best_at_level)) > level) {
        level *= 2;
        best_at_level = best;
      }
      best_promises = promises_;
      in_vain = 0;
    } else if (++in_vain > kMostInVain) {
      in_vain = 0;
      level /= 2;
      best_at_level = best;
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
  const std::vector<Picoseconds> around = paths_.AroundEach();
  for (const uint32_t c : used_candidates_) {
    if (around[c] >= kNever) continue;
    for (size_t i = first_priced_[c]; i < first_priced_[c + 1]; ++i) {
      const uint32_t variant = priced_[i].variant;
      if (price_[variant] < kNever) with_[variant] = constant_ + around[c] + price_[variant];
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
