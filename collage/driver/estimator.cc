#include "collage/driver/estimator.h"

namespace collage {

Status Estimates::Add(const Placement& placement, const Progress& progress) {
  for (size_t number = costs_.size(); number < placement.kernels.size(); ++number) {
    const PlacedKernel& kernel = placement.kernels[number];
    if (kernel.candidate == PlacedKernel::kNone) {
      costs_.push_back(placement.arms.kernels.kernels()[number].roofline);
      continue;
    }
    const PricedCandidate& candidate = placement.candidates[kernel.candidate];
    const std::string& target = placement.targets[candidate.backend].target;
    const auto [at, is_new] = known_.try_emplace({target, kernel.key.function_hash});
    if (is_new) {
      progress.Report({"estimating", number + 1, placement.kernels.size(), target});
      if (progress.stop_requested && progress.stop_requested->load()) return Fail("stopped before all prices were estimated");
      at->second = COLLAGE_TRY(estimator_(candidate.extracted.function, target));
    }
    costs_.push_back(at->second);
  }
  return {};
}

std::vector<Price> Estimates::Prices() const {
  std::vector<Price> prices;
  for (const Cost cost : costs_) {
    Price price;
    price.known = cost.IsInvalid() ? Price::Known::kInvalid : cost.IsKnown() ? Price::Known::kAlone : Price::Known::kNothing;
    if (cost.IsKnown()) price.low = price.centre = price.high = cost;
    prices.push_back(price);
  }
  return prices;
}

}  // namespace collage
