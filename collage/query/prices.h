#pragma once

#include <map>
#include <optional>
#include <string>

#include "collage/query/program.h"

namespace collage {

/// Prices as data: {"per_operator": {backend: c}, "factor": f}. A partition of n operators costs c (1 + f + .. + f^(n-1)).
class FixedPrices {
 public:
  static Result<FixedPrices> Read(const JsonReader& reader);
  /// Nothing for a backend without a price, which cannot run anything.
  [[nodiscard]] std::optional<double> Of(const std::string& backend, size_t operators) const;

 private:
  std::map<std::string, double> per_operator_;
  double factor_ = 1;
};

/// A price in an answer: whole where it is whole.
Json PriceToJson(double price);

}  // namespace collage
