#include "collage/runtime/memory_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "collage/support/memory.h"

namespace collage {
namespace {

/// Intervals over steps that answers which of them meet a given one, without looking at the others.
class IntervalIndex {
 public:
  explicit IntervalIndex(size_t steps) {
    while (leaves_ < steps) leaves_ *= 2;
    nodes_.resize(2 * leaves_);
  }

  void Add(size_t id, const LiveInterval& interval) {
    by_begin_.insert({interval.begin, id});
    // The nodes of a segment tree that together cover the interval.
    for (size_t low = interval.begin + leaves_, high = interval.end + leaves_ + 1; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) nodes_[low++].push_back(id);
      if (high % 2 == 1) nodes_[--high].push_back(id);
    }
  }

  /// Those alive at the begin of `interval`, and those that begin while it lives.
  [[nodiscard]] std::vector<size_t> Meeting(const LiveInterval& interval) const {
    std::vector<size_t> ids;
    for (size_t node = interval.begin + leaves_; node > 0; node /= 2) ids.insert(ids.end(), nodes_[node].begin(), nodes_[node].end());
    const auto end = by_begin_.lower_bound({interval.end + 1, 0});
    for (auto it = by_begin_.lower_bound({interval.begin + 1, 0}); it != end; ++it) ids.push_back(it->second);
    return ids;
  }

 private:
  size_t leaves_ = 1;
  std::vector<std::vector<size_t>> nodes_;
  std::set<std::pair<size_t, size_t>> by_begin_;
};

/// A buffer of no bytes has a place of its own too.
size_t SpanOf(const LiveInterval& interval) { return AlignedBytes(std::max<size_t>(interval.bytes, 1)); }

struct Range {
  size_t begin;
  size_t end;
};

/// The start of the smallest gap between `taken` that holds `bytes`, else the end of the last.
size_t BestFit(std::vector<Range> taken, size_t bytes) {
  std::sort(taken.begin(), taken.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  size_t best = std::numeric_limits<size_t>::max();
  size_t best_gap = std::numeric_limits<size_t>::max();
  size_t free_from = 0;
  for (const Range& range : taken) {
    const size_t gap = range.begin > free_from ? range.begin - free_from : 0;
    if (gap >= bytes && gap < best_gap) {
      best = free_from;
      best_gap = gap;
    }
    free_from = std::max(free_from, range.end);
  }
  return best_gap == std::numeric_limits<size_t>::max() ? free_from : best;
}

}  // namespace

MemoryPlan PlanMemory(const std::vector<LiveInterval>& intervals) {
  size_t steps = 1;
  for (const LiveInterval& interval : intervals) steps = std::max(steps, interval.end + 1);
  std::vector<size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return intervals[a].bytes > intervals[b].bytes; });
  MemoryPlan plan;
  plan.offsets.resize(intervals.size());
  IntervalIndex placed(steps);
  for (const size_t id : order) {
    std::vector<Range> taken;
    for (const size_t other : placed.Meeting(intervals[id])) {
      taken.push_back({plan.offsets[other], plan.offsets[other] + SpanOf(intervals[other])});
    }
    const size_t bytes = SpanOf(intervals[id]);
    plan.offsets[id] = BestFit(std::move(taken), bytes);
    plan.bytes = std::max(plan.bytes, plan.offsets[id] + bytes);
    placed.Add(id, intervals[id]);
  }
  return plan;
}

}  // namespace collage
