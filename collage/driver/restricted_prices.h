#pragma once

#include <atomic>
#include <utility>
#include <vector>

#include "collage/search/candidate_prices.h"
#include "collage/search/lazy.h"

namespace collage {

/// The prices of a placement with some candidates taken out.
class RestrictedPrices : public VariantPrices {
 public:
  RestrictedPrices(VariantPrices& prices, std::vector<bool> allowed) : prices_(prices), allowed_(std::move(allowed)) {}
  [[nodiscard]] Cost PriceOrBound(size_t c, size_t v) const override { return allowed_[c] ? prices_.PriceOrBound(c, v) : Cost::Invalid(); }
  [[nodiscard]] bool IsPriced(size_t c, size_t v) const override { return !allowed_[c] || prices_.IsPriced(c, v); }
  Status Price(size_t c, size_t v) override { return prices_.Price(c, v); }

 private:
  VariantPrices& prices_;
  std::vector<bool> allowed_;
};

/// Asks the search to stop when so many of the distinct candidates are measured.
class LimitedPrices : public VariantPrices {
 public:
  LimitedPrices(CandidatePrices& prices, const Progress& progress, size_t most_measured)
      : prices_(prices), progress_(progress), most_measured_(most_measured) {
    Check();
  }
  [[nodiscard]] Cost PriceOrBound(size_t c, size_t v) const override { return prices_.PriceOrBound(c, v); }
  [[nodiscard]] bool IsPriced(size_t c, size_t v) const override { return prices_.IsPriced(c, v); }
  Status Price(size_t c, size_t v) override {
    COLLAGE_TRY_STATUS(prices_.Price(c, v));
    Check();
    return {};
  }
  [[nodiscard]] const std::atomic<bool>& stop() const { return stop_; }

 private:
  void Check() { stop_ = prices_.measured() >= most_measured_ || progress_.ShouldStop(); }

  CandidatePrices& prices_;
  const Progress& progress_;
  size_t most_measured_;
  std::atomic<bool> stop_ = false;
};

}  // namespace collage
