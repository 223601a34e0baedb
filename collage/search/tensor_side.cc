#include "collage/search/tensor_side.h"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

#include "collage/search/frontier.h"

namespace collage {

TensorSide::TensorSide(const SearchTables& tables, size_t tensor, bool is_due, std::vector<Consumer> consumers)
    : tables_(&tables), tensor_(tensor), consumers_(std::move(consumers)), is_due_(is_due), wanted_(is_due ? LayoutBit(0) : 0) {
  for (const Consumer& consumer : consumers_) wanted_ |= consumer.wish;
  for (size_t layout = 0; layout < SearchTables::kMostLayouts; ++layout) {
    if (wanted_ & LayoutBit(layout)) wanted_list_.push_back(layout);
  }
  const size_t count = wanted_list_.size();
  conversion_.assign(tables.LayoutsOf(tensor).size() * count, kNever);
  for (LayoutMask made = tables.MadeIn(tensor); made != 0; made &= made - 1) {
    const auto from = static_cast<size_t>(std::countr_zero(made));
    for (size_t i = 0; i < count; ++i) conversion_[from * count + i] = ToPicoseconds(tables.Conversion(tensor, from, wanted_list_[i]));
  }
  Update();
}

void TensorSide::Update() {
  if (wanted_list_.size() > kMostEnumerated) return;
  const size_t subsets = size_t{1} << wanted_list_.size();
  gain_.assign(subsets, 0);
  std::array<Picoseconds, kMostSubsets> most;
  for (const Consumer& consumer : consumers_) {
    if (consumer.wish == 0) continue;
    most[0] = consumer.may_skip ? 0 : -kNever;
    for (size_t subset = 1; subset < subsets; ++subset) {
      const auto low = static_cast<size_t>(std::countr_zero(subset));
      const size_t layout = wanted_list_[low];
      most[subset] = most[subset & (subset - 1)];
      if (consumer.wish & LayoutBit(layout)) most[subset] = std::max(most[subset], consumer.promises[layout]);
    }
    for (size_t subset = 0; subset < subsets; ++subset)
      gain_[subset] = gain_[subset] <= -kNever || most[subset] <= -kNever ? -kNever : gain_[subset] + most[subset];
  }
}

LayoutMask TensorSide::MaskOf(size_t subset) const {
  LayoutMask mask = 0;
  for (size_t i = 0; i < wanted_list_.size(); ++i) {
    if (subset >> i & 1u) mask |= LayoutBit(wanted_list_[i]);
  }
  return mask;
}

size_t TensorSide::SubsetOf(LayoutMask mask) const {
  size_t subset = 0;
  for (size_t i = 0; i < wanted_list_.size(); ++i) subset |= static_cast<size_t>((mask & LayoutBit(wanted_list_[i])) != 0) << i;
  return subset;
}

int TensorSide::BestOf(const Consumer& consumer, LayoutMask open) {
  int best = -1;
  Picoseconds most = consumer.may_skip ? 0 : -kNever;
  for (LayoutMask layouts = consumer.wish & open; layouts != 0; layouts &= layouts - 1) {
    const int layout = std::countr_zero(layouts);
    if (consumer.promises[layout] > most) most = consumer.promises[layout], best = layout;
  }
  return best;
}

Picoseconds TensorSide::LeastEnumerated(size_t produced, LayoutMask existing, LayoutMask* best) const {
  const size_t count = wanted_list_.size();
  const size_t free = SubsetOf(existing);
  const size_t forced = free | (is_due_ ? SubsetOf(LayoutBit(0)) : 0);
  // Sums of prices of at most six conversions, which cannot overflow.
  std::array<Picoseconds, kMostSubsets> price;
  price[0] = 0;
  Picoseconds least = kNever;
  const size_t all = size_t{1} << count;
  for (size_t set = 1; set < all; ++set) {
    const auto low = static_cast<size_t>(std::countr_zero(set));
    price[set] = price[set & (set - 1)] + (free >> low & 1u ? 0 : conversion_[produced * count + low]);
  }
  for (size_t set = all; set-- > 0;) {
    if ((set & forced) != forced || price[set] >= kNever || gain_[set] <= -kNever || price[set] - gain_[set] >= least) continue;
    least = price[set] - gain_[set];
    if (best) *best = existing | MaskOf(set);
  }
  return least;
}

Picoseconds TensorSide::LeastSeparately(size_t produced, LayoutMask existing, LayoutMask* best) const {
  const LayoutMask forced = existing | (is_due_ ? LayoutBit(0) : 0);
  Picoseconds total = 0;
  if (forced != existing) total += std::min(kNever / 4, ToPicoseconds(tables_->Conversion(tensor_, produced, 0)));
  std::vector<Picoseconds> base(consumers_.size(), 0);
  for (size_t i = 0; i < consumers_.size(); ++i) {
    const Consumer& consumer = consumers_[i];
    if (consumer.wish == 0) continue;
    const int taken = BestOf(consumer, forced);
    if (taken >= 0) {
      base[i] = consumer.promises[taken];
    } else if (!consumer.may_skip) {
      base[i] = kNever;
      for (LayoutMask layouts = consumer.wish; layouts != 0; layouts &= layouts - 1)
        base[i] = std::min(base[i], consumer.promises[std::countr_zero(layouts)]);
    }
    total -= base[i];
  }
  LayoutMask open = forced;
  for (const size_t layout : wanted_list_) {
    if (forced & LayoutBit(layout)) continue;
    Picoseconds price = ToPicoseconds(tables_->Conversion(tensor_, produced, layout));
    if (price >= kNever) continue;
    for (size_t i = 0; i < consumers_.size(); ++i) {
      if (consumers_[i].wish & LayoutBit(layout)) price -= std::max(Picoseconds{0}, consumers_[i].promises[layout] - base[i]);
    }
    if (price < 0) total += price, open |= LayoutBit(layout);
  }
  if (best) *best = open;
  return total;
}

Picoseconds TensorSide::Least(size_t produced, LayoutMask existing) const {
  if (produced == Frontier::kAnywhere) return LeastOfAll();
  existing |= LayoutBit(produced);
  return gain_.empty() ? LeastSeparately(produced, existing, nullptr) : LeastEnumerated(produced, existing, nullptr);
}

Picoseconds TensorSide::LeastOfAll() const {
  if (!gain_.empty()) return gain_.back() <= -kNever ? kNever : -gain_.back();
  Picoseconds total = 0;
  for (const Consumer& consumer : consumers_) {
    if (const int taken = BestOf(consumer, wanted_); taken >= 0) total -= consumer.promises[taken];
  }
  return total;
}

LayoutMask TensorSide::BestSet(size_t produced, LayoutMask existing) const {
  LayoutMask best = existing;
  if (gain_.empty()) {
    std::ignore = LeastSeparately(produced, existing, &best);
  } else {
    std::ignore = LeastEnumerated(produced, existing, &best);
  }
  return best;
}

}  // namespace collage
