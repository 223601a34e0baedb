#include "collage/search/price_bounds.h"

#include <algorithm>

namespace collage {
namespace {

bool HasRun(Cost price) { return !price.IsUnknown(); }

}  // namespace

size_t PriceBounds::AddFunction(KernelWork work) {
  families_[{work.backend, work.heavy}].push_back(functions_.size());
  functions_.push_back({std::move(work), {}});
  return functions_.size() - 1;
}

size_t PriceBounds::AddVariant(size_t function, std::string layouts) {
  functions_[function].variants.push_back(variants_.size());
  variants_.push_back({function, std::move(layouts)});
  is_fresh_ = false;
  return variants_.size() - 1;
}

void PriceBounds::SetPrice(size_t variant, Cost now, Cost alone, bool is_in_context) {
  KernelVariant& known = variants_[variant];
  is_fresh_ = is_fresh_ && known.now == now && known.alone == alone && known.is_in_context == is_in_context;
  known.now = now;
  known.alone = alone;
  known.is_in_context = is_in_context;
}

Cost PriceBounds::Bound(size_t variant) const {
  if (trust_.share <= 0 && trust_.stake == Cost()) return Roofline(variant);
  if (!is_fresh_) Refresh();
  const Cost assumed = assumed_[variant];
  const Cost trusted = Cost::Seconds(trust_.share * assumed.ToSeconds()) + trust_.stake;
  return std::max(Roofline(variant), std::min(assumed, trusted));
}

std::vector<size_t> PriceBounds::Telling(size_t variant) const {
  const size_t function = variants_[variant].function;
  const KernelWork& work = functions_[function].work;
  std::vector<size_t> telling;
  if (work.heavy.empty() || trust_.share <= 0) return telling;
  for (const size_t relative : families_.at({work.backend, work.heavy})) {
    const std::vector<size_t>& variants = functions_[relative].variants;
    const auto has_run = [this](size_t v) { return HasRun(variants_[v].now); };
    if (relative == function || std::none_of(variants.begin(), variants.end(), has_run)) continue;
    for (const size_t v : variants) {
      if (!has_run(v) && variants_[v].layouts == variants_[variant].layouts) telling.push_back(v);
    }
  }
  return telling;
}

void PriceBounds::Refresh() const {
  FindCheapestApart();
  FindRegions();
  FindRate();
  assumed_.clear();
  for (size_t variant = 0; variant < variants_.size(); ++variant) {
    const KernelWork& work = functions_[variants_[variant].function].work;
    assumed_.push_back(std::max({FamilyBound(variant), RegionBound(work), RateBound(work)}));
  }
  is_fresh_ = true;
}

Cost PriceBounds::CheapestAlone(const Function& function) const {
  Cost cheapest = Cost::Unknown();
  for (const size_t v : function.variants) cheapest = std::min(cheapest, variants_[v].alone);
  return cheapest;
}

void PriceBounds::FindCheapestApart() const {
  apart_now_.clear();
  apart_alone_.clear();
  const auto take = [](ByOperator& cheapest, uint64_t heavy, Cost price) {
    if (!price.IsKnown()) return;
    Cost& least = cheapest.try_emplace(heavy, price).first->second;
    least = std::min(least, price);
  };
  for (const KernelVariant& variant : variants_) {
    const KernelWork& work = functions_[variant.function].work;
    if (work.heavy.size() != 1) continue;
    take(apart_now_, work.heavy.front(), variant.now);
    take(apart_alone_, work.heavy.front(), variant.alone);
  }
}

/// What a relative says of kernels in these layouts; Unknown where too little of it has run.
Cost PriceBounds::BoundFrom(const Function& relative, const std::string& layouts) const {
  Cost alike = Cost::Unknown();
  Cost any = Cost::Unknown();
  bool all_alike = true;
  bool all = true;
  bool has_alike = false;
  for (const size_t v : relative.variants) {
    const KernelVariant& variant = variants_[v];
    const bool is_alike = variant.layouts == layouts;
    has_alike = has_alike || is_alike;
    all = all && HasRun(variant.now);
    all_alike = all_alike && (!is_alike || HasRun(variant.now));
    any = std::min(any, variant.now);
    if (is_alike) alike = std::min(alike, variant.now);
  }
  if (!any.IsKnown() || !(has_alike ? all_alike : all)) return Cost::Unknown();
  // One implementation may be far off in this very function, so how bad a layout is counts only so far.
  return std::min(alike.IsKnown() ? alike : any, Cost::Seconds(assumptions_.most_by_layout * any.ToSeconds()));
}

Cost PriceBounds::CheapestInContext(const Function& relative, const std::string& layouts) const {
  Cost cheapest = Cost::Unknown();
  for (const size_t v : relative.variants) {
    if (variants_[v].is_in_context && variants_[v].layouts == layouts) cheapest = std::min(cheapest, variants_[v].now);
  }
  return cheapest;
}

// The least of what its relatives say: where prices contradict the assumption, the bound that allows more is taken.
Cost PriceBounds::FamilyBound(size_t variant) const {
  const size_t function = variants_[variant].function;
  const KernelWork& work = functions_[function].work;
  if (work.heavy.empty()) return {};
  Cost bound = Cost::Unknown();
  Cost in_context = Cost::Unknown();
  for (const size_t relative : families_.at({work.backend, work.heavy})) {
    if (relative == function) continue;
    const double more_bytes = std::max(0.0, functions_[relative].work.bytes - work.bytes);
    const auto lower = [&](Cost& least, Cost told) {
      if (told.IsKnown())
        least = std::min(least, Cost::Seconds(std::max(0.0, told.ToSeconds() - more_bytes / assumptions_.slow_bytes_per_second)));
    };
    lower(bound, BoundFrom(functions_[relative], variants_[variant].layouts));
    lower(in_context, CheapestInContext(functions_[relative], variants_[variant].layouts));
  }
  if (in_context.IsKnown()) return in_context;
  return bound.IsKnown() ? bound : Cost();
}

Cost PriceBounds::Sum(const ByOperator& cheapest, const std::vector<uint64_t>& heavy) {
  Cost sum;
  for (const uint64_t number : heavy) {
    const auto at = cheapest.find(number);
    sum += at == cheapest.end() ? Cost::Unknown() : at->second;
  }
  return sum;
}

void PriceBounds::FindRegions() const {
  regions_.clear();
  for (const Function& function : functions_) {
    if (function.work.heavy.size() < 2) continue;
    const Cost price = CheapestAlone(function);
    const Cost apart = Sum(apart_alone_, function.work.heavy);
    if (!price.IsKnown() || !apart.IsKnown()) continue;
    Sums& sums = regions_[function.work.backend];
    sums.seconds += price.ToSeconds();
    sums.seconds_apart += apart.ToSeconds();
    ++sums.count;
  }
}

Cost PriceBounds::RegionBound(const KernelWork& work) const {
  if (work.heavy.size() < 2) return {};
  const auto regions = regions_.find(work.backend);
  if (regions == regions_.end() || regions->second.count < assumptions_.least_known || regions->second.seconds_apart <= 0) return {};
  const Cost apart = Sum(apart_now_, work.heavy);
  const double ratio = regions->second.seconds / regions->second.seconds_apart;
  return apart.IsKnown() ? Cost::Seconds(assumptions_.region_share * ratio * apart.ToSeconds()) : Cost();
}

void PriceBounds::FindRate() const {
  rate_ = 0;
  size_t count = 0;
  for (const Function& function : functions_) {
    if (!function.work.heavy.empty() || function.work.bytes < assumptions_.least_bytes) continue;
    const Cost price = CheapestAlone(function);
    if (!price.IsKnown() || price == Cost()) continue;
    rate_ = std::max(rate_, function.work.bytes / price.ToSeconds());
    ++count;
  }
  if (count < assumptions_.least_known) rate_ = 0;
}

Cost PriceBounds::RateBound(const KernelWork& work) const {
  if (!work.heavy.empty() || rate_ == 0 || work.bytes < assumptions_.least_bytes) return {};
  return Cost::Seconds(work.bytes / (assumptions_.rate_factor * rate_));
}

}  // namespace collage
