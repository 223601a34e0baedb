#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <string>

namespace collage {

/// Expected latency of a candidate: a time, or Unknown (not known yet), or Invalid (cannot be compiled or run). Additive and
/// totally ordered: every time < Unknown < Invalid. Times are whole picoseconds, so that a sum does not depend on the order in
/// which it is taken and equal prices are equal; as doubles, the tie-breaks of the search would hang on rounding.
class Cost {
 public:
  constexpr Cost() = default;  // zero
  static constexpr Cost Unknown() { return Cost(kUnknown); }
  static constexpr Cost Invalid() { return Cost(kInvalid); }
  static Cost Seconds(double seconds) { return Cost(std::llround(seconds * 1e12)); }
  static Cost Microseconds(double microseconds) { return Seconds(microseconds * 1e-6); }

  [[nodiscard]] constexpr bool IsUnknown() const { return picoseconds_ == kUnknown; }
  [[nodiscard]] constexpr bool IsInvalid() const { return picoseconds_ == kInvalid; }
  [[nodiscard]] constexpr bool IsKnown() const { return picoseconds_ < kUnknown; }
  [[nodiscard]] double ToSeconds() const {
    if (IsUnknown()) return std::numeric_limits<double>::quiet_NaN();
    return IsInvalid() ? std::numeric_limits<double>::infinity() : static_cast<double>(picoseconds_) * 1e-12;
  }
  [[nodiscard]] double ToMicroseconds() const { return ToSeconds() * 1e6; }

  friend constexpr Cost operator+(Cost a, Cost b) {
    if (a.IsKnown() && b.IsKnown()) return Cost(a.picoseconds_ + b.picoseconds_);
    return a < b ? b : a;
  }
  Cost& operator+=(Cost other) { return *this = *this + other; }
  /// Both must be known.
  friend constexpr Cost operator-(Cost a, Cost b) { return Cost(a.picoseconds_ - b.picoseconds_); }
  friend constexpr auto operator<=>(const Cost&, const Cost&) = default;

 private:
  explicit constexpr Cost(int64_t picoseconds) : picoseconds_(picoseconds) {}
  static constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max() / 4;
  static constexpr int64_t kInvalid = std::numeric_limits<int64_t>::max() / 2;

  int64_t picoseconds_ = 0;
};

}  // namespace collage
