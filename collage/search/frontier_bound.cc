#include "collage/search/frontier_bound.h"

#include <algorithm>

namespace collage {

FrontierBound::FrontierBound(const Relaxation& relaxation, const SearchTables& tables, const Frontier& frontier, size_t set)
    : relaxation_(relaxation), covered_(frontier.covered()), set_(set) {
  for (const size_t tensor : frontier.open()) {
    OpenTensor& open = open_.emplace_back(OpenTensor{tensor, std::nullopt, {}});
    if (tables.IsProduced(tensor, covered_)) {
      open.side = relaxation.SideOf(tensor, covered_);
      least_of_any_ += open.side->LeastOfAll();
    } else {
      least_of_any_ += relaxation.PromisedBefore(tensor, covered_, ~LayoutMask{0});
    }
  }
}

Picoseconds FrontierBound::LeastOf(OpenTensor& open, Frontier::TensorState state) const {
  for (const auto& [known, least] : open.known) {
    if (known == state) return least;
  }
  const Picoseconds least =
      open.side ? open.side->Least(state.produced, state.layouts) : relaxation_.PromisedBefore(open.tensor, covered_, state.layouts);
  open.known.emplace_back(state, least);
  return least;
}

Cost FrontierBound::Least(const Frontier& frontier, const Frontier::State& state) {
  Picoseconds total = relaxation_.ToGo(set_, state.last_backend);
  const Frontier::TensorState* const tensors = frontier.TensorsOf(state);
  for (size_t i = 0; i < open_.size() && total < kNever; ++i) {
    const Picoseconds one = LeastOf(open_[i], tensors[i]);
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
