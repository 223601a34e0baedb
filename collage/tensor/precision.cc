#include "collage/tensor/precision.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <optional>
#include <string_view>

namespace collage {
namespace {

constexpr std::string_view kBFloat16Name = "bf16";

std::optional<double> NumberOf(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Result<Precision> Precision::Parse(const std::string& text) {
  const size_t equals = text.find('=');
  if (std::string_view(text).substr(0, equals) != kBFloat16Name)
    return Fail("is '" + text + "', expected bf16, or bf16=TOLERANCE as in bf16=0.02");
  if (equals == std::string::npos) return Precision{DType::kBFloat16, kToleranceOfBFloat16};
  const std::optional<double> tolerance = NumberOf(std::string_view(text).substr(equals + 1));
  // Not a number fails both comparisons.
  if (!tolerance || !(*tolerance > 0 && *tolerance < 1))
    return Fail("is '" + text +
                "', whose tolerance is no number above 0 and below 1: the largest difference from the reference, relative " +
                "to the largest value of an output");
  return Precision{DType::kBFloat16, *tolerance};
}

std::string NameOf(const Precision&) { return std::string(kBFloat16Name); }

std::string ToString(const Precision& precision) { return fmt::format("{}={}", NameOf(precision), precision.tolerance); }

}  // namespace collage
