#include "collage/tensor/precision.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "collage/support/check.h"

namespace collage {
namespace {

struct Permit {
  std::string_view name;
  DType stored;
  double tolerance;  // where none is stated
};

constexpr std::array kPermits = {Permit{"bf16", DType::kBFloat16, kToleranceOfBFloat16},
                                 Permit{"int8-weights", DType::kInt8, kToleranceOfInt8Weights}};

std::optional<double> NumberOf(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Result<Precision> Precision::Parse(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string_view name = std::string_view(text).substr(0, equals);
  const auto* const permit = std::find_if(kPermits.begin(), kPermits.end(), [&](const Permit& one) { return one.name == name; });
  if (permit == kPermits.end()) return Fail("is '" + text + "', expected bf16 or int8-weights, either with a tolerance as in bf16=0.02");
  if (equals == std::string::npos) return Precision{permit->stored, permit->tolerance};
  const std::optional<double> tolerance = NumberOf(std::string_view(text).substr(equals + 1));
  // Not a number fails both comparisons.
  if (!tolerance || !(*tolerance > 0 && *tolerance < 1))
    return Fail("is '" + text +
                "', whose tolerance is no number above 0 and below 1: the largest difference from the reference, relative " +
                "to the largest value of an output");
  return Precision{permit->stored, *tolerance};
}

std::string NameOf(const Precision& precision) {
  const auto* const permit =
      std::find_if(kPermits.begin(), kPermits.end(), [&](const Permit& one) { return one.stored == precision.stored; });
  COLLAGE_CHECK(permit != kPermits.end(), "no permit stores " + std::string(Name(precision.stored)));
  return std::string(permit->name);
}

std::string ToString(const Precision& precision) { return fmt::format("{}={}", NameOf(precision), precision.tolerance); }

}  // namespace collage
