#include <algorithm>
#include <tuple>
#include <vector>

#include "collage/op/window.h"

namespace collage {
namespace {

/// Whole numbers `first` to `last` of one residue class.
struct Interval {
  int64_t residue;
  int64_t first;
  int64_t last;
};

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// How many numbers there are in the union.
int64_t SizeOfUnion(std::vector<Interval> intervals) {
  const auto key = [](const Interval& interval) { return std::tie(interval.residue, interval.first); };
  std::sort(intervals.begin(), intervals.end(), [&](const Interval& a, const Interval& b) { return key(a) < key(b); });
  int64_t size = 0;
  for (size_t i = 0; i < intervals.size();) {
    Interval merged = intervals[i];
    for (++i; i < intervals.size() && intervals[i].residue == merged.residue && intervals[i].first <= merged.last; ++i)
      merged.last = std::max(merged.last, intervals[i].last);
    size += merged.last - merged.first + 1;
  }
  return size;
}

}  // namespace

WindowUse UseAlong(int64_t taps, int64_t dilation, int64_t positions, int64_t stride, int64_t pad_begin, int64_t extent) {
  // An element is a multiple of a tap, one of a position, and an offset, so the two may change places: the fewer ones are gone through.
  const bool by_tap = taps <= positions;
  const int64_t step = by_tap ? dilation : stride;
  const int64_t other_step = by_tap ? stride : dilation;
  const int64_t others = by_tap ? positions : taps;
  std::vector<Interval> elements;
  std::vector<Interval> met_others;
  int64_t pairs = 0;
  for (int64_t one = 0; one < std::min(taps, positions); ++one) {
    const int64_t offset = one * step - pad_begin;
    const int64_t quotient = FloorDivide(offset, other_step);
    const int64_t residue = offset - quotient * other_step;
    const int64_t first = std::max(int64_t{0}, -quotient);
    const int64_t last = std::min(others - 1, FloorDivide(extent - 1 - offset, other_step));
    if (first > last) continue;
    pairs += last - first + 1;
    met_others.push_back({0, first, last});
    elements.push_back({residue, quotient + first, quotient + last});
  }
  WindowUse use;
  use.pairs = static_cast<double>(pairs);
  use.elements = static_cast<double>(SizeOfUnion(std::move(elements)));
  const auto met = static_cast<double>(met_others.size());
  const auto met_by_them = static_cast<double>(SizeOfUnion(std::move(met_others)));
  use.taps = by_tap ? met : met_by_them;
  use.positions = by_tap ? met_by_them : met;
  return use;
}

}  // namespace collage
