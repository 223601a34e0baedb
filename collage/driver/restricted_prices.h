#pragma once

#include <utility>
#include <vector>

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

}  // namespace collage
