#include "collage/search/frontier_bound.h"

#include <algorithm>

namespace collage {

OpenTensors::Tensor::Tensor(const Relaxation& relaxation, const SearchTables& tables, size_t tensor, const Covered& covered)
    : relaxation_(relaxation), tensor_(tensor), covered_(covered) {
  if (tables.IsProduced(tensor, covered)) {
    side_ = relaxation.SideOf(tensor, covered);
    least_of_any_ = side_->LeastOfAll();
  } else {
    least_of_any_ = relaxation.PromisedBefore(tensor, covered, ~LayoutMask{0});
  }
}

Picoseconds OpenTensors::Tensor::Least(Frontier::TensorState state) {
  for (const auto& [known, least] : known_) {
    if (known == state) return least;
  }
  const Picoseconds least =
      side_ ? side_->Least(state.produced, state.layouts) : relaxation_.PromisedBefore(tensor_, covered_, state.layouts);
  known_.emplace_back(state, least);
  return least;
}

OpenTensors::Tensor& OpenTensors::Of(size_t tensor, const Covered& covered) {
  Key key{tensor, tables_.IsProduced(tensor, covered), {}};
  const std::vector<size_t>& consumers = tables_.ConsumersOf(tensor);
  for (size_t i = 0; i < consumers.size(); ++i) {
    if (!covered.Contains(consumers[i])) key.outside.Add(i);
  }
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_.try_emplace(std::move(key), relaxation_, tables_, tensor, covered).first->second;
}

FrontierBound::FrontierBound(const Relaxation& relaxation, OpenTensors& tensors, const Frontier& frontier, size_t set)
    : relaxation_(relaxation), set_(set) {
  for (const size_t tensor : frontier.open()) {
    open_.push_back(&tensors.Of(tensor, frontier.covered()));
    least_of_any_ += open_.back()->LeastOfAny();
  }
}

Cost FrontierBound::Least(const Frontier& frontier, const Frontier::State& state) {
  Picoseconds total = relaxation_.ToGo(set_, state.last_backend);
  const Frontier::TensorState* const tensors = frontier.TensorsOf(state);
  for (size_t i = 0; i < open_.size() && total < kNever; ++i) {
    const Picoseconds one = open_[i]->Least(tensors[i]);
    total = one >= kNever ? kNever : total + one;
  }
  return total >= kNever ? Cost::Invalid() : state.cost + ToCost(total);
}

Cost FrontierBound::LeastOfAny(Cost cost, uint32_t last_backend) const {
  const Picoseconds rest = relaxation_.ToGo(set_, last_backend);
  return rest >= kNever ? Cost::Invalid() : cost + ToCost(rest + least_of_any_);
}

Cost FrontierBound::LeastOfAny(Cost cost) const {
  const Picoseconds rest = relaxation_.LeastToGo(set_);
  return rest >= kNever ? Cost::Invalid() : cost + ToCost(rest + least_of_any_);
}

}  // namespace collage
