#include "collage/query/prices.h"

#include <cmath>

namespace collage {

Result<FixedPrices> FixedPrices::Read(const JsonReader& reader) {
  COLLAGE_TRY_STATUS(reader.OnlyFields({"per_operator", "factor"}));
  FixedPrices prices;
  prices.factor_ = COLLAGE_TRY(reader.NumberOr("factor", 1));
  if (prices.factor_ < 0) return COLLAGE_TRY(reader.At("factor")).Expected("a number that is not negative");
  for (const auto& [backend, price] : COLLAGE_TRY(COLLAGE_TRY(reader.At("per_operator")).Fields())) {
    const double value = COLLAGE_TRY(price.Number());
    if (value < 0) return price.Expected("a number that is not negative");
    prices.per_operator_[backend] = value;
  }
  return prices;
}

std::optional<double> FixedPrices::Of(const std::string& backend, size_t operators) const {
  const auto at = per_operator_.find(backend);
  if (at == per_operator_.end()) return {};
  double sum = 0;
  double share = 1;
  for (size_t i = 0; i < operators; ++i, share *= factor_) sum += share;
  return at->second * sum;
}

Json PriceToJson(double price) {
  constexpr double kLargestWhole = 1e15;
  if (price == std::floor(price) && std::abs(price) < kLargestWhole) return static_cast<int64_t>(price);
  return price;
}

}  // namespace collage
