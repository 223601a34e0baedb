#include "collage/op/quantised_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "collage/op/axis_view.h"

namespace collage {
namespace {

// A product of two numbers of float32 and a quotient by it, each rounded: a few units of roundoff, which are 6e-8.
constexpr double kRounding = 3e-7;
constexpr double kLow = -128;
constexpr double kHigh = 127;

bool AreMultiples(const std::vector<double>& values, double scale) {
  return std::all_of(values.begin(), values.end(), [&](double value) {
    const double whole = std::nearbyint(value / scale);
    return whole >= kLow && whole <= kHigh && std::abs(value - whole * scale) <= kRounding * std::abs(value);
  });
}

/// The largest scale that will do, which leaves the smallest whole numbers; nothing where none does.
std::optional<double> ScaleOf(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  if (!std::isfinite(largest)) return std::nullopt;
  if (largest == 0) return 1;
  for (int parts = 1; parts <= -kLow; ++parts) {
    if (AreMultiples(values, largest / parts)) return largest / parts;
  }
  return std::nullopt;
}

}  // namespace

std::optional<QuantisedWeights> QuantiseExactly(const Tensor& weights, size_t axis) {
  const AxisView view(weights.shape(), axis);
  const std::vector<double> values = weights.ToDouble();
  QuantisedWeights quantised{Tensor(TensorType{weights.shape(), DType::kInt8}), {}};
  auto* result = quantised.values.MutableData<int8_t>();
  const auto for_each = [&](int64_t channel, const auto& visit) {
    for (int64_t outer = 0; outer < view.outer; ++outer) {
      for (int64_t inner = 0; inner < view.inner; ++inner) visit(static_cast<size_t>((outer * view.extent + channel) * view.inner + inner));
    }
  };
  std::vector<double> of_channel;
  for (int64_t channel = 0; channel < view.extent; ++channel) {
    of_channel.clear();
    for_each(channel, [&](size_t at) { of_channel.push_back(values[at]); });
    const std::optional<double> scale = ScaleOf(of_channel);
    if (!scale) return std::nullopt;
    for_each(channel, [&](size_t at) { result[at] = static_cast<int8_t>(std::nearbyint(values[at] / *scale)); });
    quantised.scales.push_back(static_cast<float>(*scale));
  }
  return quantised;
}

Result<QuantisedWeights> Round(const Tensor& weights, size_t axis) {
  constexpr float kLargest = 127;  // of a byte whose numbers are as many below zero as above
  const AxisView view(weights.shape(), axis);
  const auto* values = weights.Data<float>();
  std::vector<float> scales(static_cast<size_t>(view.extent), 0);
  // In the order in which they lie, since there are millions of them.
  const auto for_each = [&](const auto& visit) {
    for (int64_t at = 0, outer = 0; outer < view.outer; ++outer) {
      for (size_t channel = 0; channel < scales.size(); ++channel) {
        for (int64_t inner = 0; inner < view.inner; ++inner, ++at) visit(at, channel);
      }
    }
  };
  bool is_finite = true;
  for_each([&](int64_t at, size_t channel) {
    is_finite = is_finite && std::isfinite(values[at]);
    scales[channel] = std::max(scales[channel], std::abs(values[at]));
  });
  if (!is_finite) return Fail("weights that are not finite are no multiples of a scale");
  std::vector<float> steps_of_one(scales.size(), 0);
  for (size_t channel = 0; channel < scales.size(); ++channel) {
    const float scale = scales[channel] / kLargest;
    // Below the smallest normal number they are as good as zero, and nothing can be divided by them.
    const bool is_zero = scale < std::numeric_limits<float>::min();
    scales[channel] = is_zero ? 1 : scale;
    steps_of_one[channel] = is_zero ? 0 : 1 / scale;
  }
  Tensor rounded(TensorType{weights.shape(), DType::kInt8});
  auto* result = rounded.MutableData<int8_t>();
  for_each([&](int64_t at, size_t channel) {
    result[at] = static_cast<int8_t>(std::clamp(std::nearbyint(values[at] * steps_of_one[channel]), -kLargest, kLargest));
  });
  return QuantisedWeights{std::move(rounded), std::move(scales)};
}

}  // namespace collage
