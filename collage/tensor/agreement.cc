#include "collage/tensor/agreement.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "collage/tensor/narrow.h"

namespace collage {
namespace {

/// `found(i)` and `expected(i)` give elements as double.
template <class Element>
Agreement CompareFloats(int64_t count, double step, const Element& found, const Element& expected) {
  Agreement agreement{.elements = count};
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double x = found(i);
    const double y = expected(i);
    if (std::isfinite(y)) {
      ++agreement.finite;
      largest = std::max(largest, std::abs(y));
      if (std::isfinite(x)) {
        agreement.difference = std::max(agreement.difference, std::abs(x - y) - step);
      } else {
        ++agreement.unequal;
      }
    } else if (x != y && !(std::isnan(x) && std::isnan(y))) {
      ++agreement.unequal;
    }
  }
  if (largest > 0) agreement.difference /= largest;
  return agreement;
}

Agreement CompareFloats(const Tensor& found, const Tensor& expected, double step) {
  if (IsNarrow(expected.dtype())) return CompareFloats(Widened(found), Widened(expected), step);
  Agreement agreement;
  VisitElementType(expected.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto element = [](const Tensor& tensor) { return [data = tensor.Data<T>()](int64_t i) { return static_cast<double>(data[i]); }; };
    agreement = CompareFloats(expected.ElementCount(), step, element(found), element(expected));
  });
  return agreement;
}

/// Byte by byte, so that a boolean that is neither 0 nor 1 is another value.
Agreement CompareExactly(const Tensor& found, const Tensor& expected) {
  const int64_t count = expected.ElementCount();
  Agreement agreement{.elements = count, .finite = count};
  const size_t size = ByteSize(expected.dtype());
  for (int64_t i = 0; i < count; ++i) {
    const size_t at = static_cast<size_t>(i) * size;
    if (std::memcmp(found.Bytes() + at, expected.Bytes() + at, size) != 0) ++agreement.unequal;
  }
  return agreement;
}

Agreement CompareIntegers(const Tensor& found, const Tensor& expected, double step) {
  Agreement agreement{.elements = expected.ElementCount(), .finite = expected.ElementCount()};
  const std::vector<double> x = found.ToDouble();
  const std::vector<double> y = expected.ToDouble();
  for (size_t i = 0; i < y.size(); ++i) agreement.unequal += std::abs(x[i] - y[i]) > step ? 1 : 0;
  return agreement;
}

Agreement AllUnequal(int64_t elements) { return {.elements = elements, .unequal = std::max<int64_t>(1, elements)}; }

}  // namespace

double Tolerance(DType rounded_to) {
  // Units in the last place, relative to a value: float16 has 11 significant bits, bfloat16 has 8.
  if (rounded_to == DType::kFloat16) return kTolerance + 0x1p-10;
  if (rounded_to == DType::kBFloat16) return kTolerance + 0x1p-7;
  if (rounded_to == DType::kFloat8E4M3FN || rounded_to == DType::kFloat8E4M3FNUZ) return kTolerance + 0x1p-3;
  if (rounded_to == DType::kFloat8E5M2 || rounded_to == DType::kFloat8E5M2FNUZ) return kTolerance + 0x1p-2;
  if (rounded_to == DType::kFloat4E2M1) return kTolerance + 0x1p-1;
  return rounded_to == DType::kFloat8E8M0 ? kTolerance + 1 : kTolerance;
}

Agreement Compare(const Tensor& found, const Tensor& expected, double step) {
  if (!(found.type() == expected.type())) return AllUnequal(expected.ElementCount());
  Agreement agreement = IsFloatingPoint(expected.dtype()) ? CompareFloats(found, expected, step)
                        : step > 0                        ? CompareIntegers(found, expected, step)
                                                          : CompareExactly(found, expected);
  agreement.uncompared = agreement.elements > 0 && agreement.finite == 0 ? 1 : 0;
  return agreement;
}

Agreement Compare(std::span<const Tensor> found, std::span<const Tensor> expected, std::span<const double> steps) {
  Agreement all;
  for (size_t i = 0; i < std::max(found.size(), expected.size()); ++i) {
    const bool is_pair = i < found.size() && i < expected.size();
    const Agreement one = is_pair ? Compare(found[i], expected[i], i < steps.size() ? steps[i] : 0)
                                  : AllUnequal(i < expected.size() ? expected[i].ElementCount() : 0);
    all.difference = std::max(all.difference, one.difference);
    all.elements += one.elements;
    all.finite += one.finite;
    all.unequal += one.unequal;
    all.uncompared += one.uncompared;
  }
  return all;
}

bool IsComparison(const Agreement& agreement) { return agreement.uncompared == 0; }

bool Passes(const Agreement& agreement, double tolerance) {
  return IsComparison(agreement) && agreement.unequal == 0 && agreement.difference <= tolerance;
}

std::string Objection(const Agreement& agreement, double tolerance) {
  if (Passes(agreement, tolerance)) return {};
  if (agreement.unequal > 0)
    return fmt::format("{} of {} elements are not what the reference gives", agreement.unequal, agreement.elements);
  if (agreement.difference > tolerance)
    return fmt::format("differs from the reference by {:.1e} of the largest value", agreement.difference);
  return "could not be compared with the reference, which gives no finite value there";
}

}  // namespace collage
