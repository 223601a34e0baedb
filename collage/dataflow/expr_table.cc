#include "collage/dataflow/expr_table.h"

namespace collage {
namespace {

/// Pages begin at places without order, what lies in one page lies in order from there.
size_t Place(const ExprNode* expr) {
  constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
  const auto address = reinterpret_cast<uintptr_t>(expr);
  return ((address >> 12) * kGoldenRatio >> 24) + (address >> 5 & 127);
}

}  // namespace

size_t ExprTable::SlotOf(const ExprNode* expr) const {
  const size_t mask = slots_.size() - 1;
  size_t at = Place(expr) & mask;
  while (slots_[at].expr && slots_[at].expr != expr) at = (at + 1) & mask;
  return at;
}

uint32_t ExprTable::Find(const ExprNode* expr) const {
  if (slots_.empty()) return kNone;
  const Slot& slot = slots_[SlotOf(expr)];
  return slot.expr ? slot.number : kNone;
}

std::pair<uint32_t, bool> ExprTable::Insert(const ExprNode* expr, uint32_t number) {
  if (2 * (count_ + 1) > slots_.size()) Grow();
  Slot& slot = slots_[SlotOf(expr)];
  if (slot.expr) return {slot.number, false};
  slot = {expr, number};
  ++count_;
  return {number, true};
}

void ExprTable::Renumber(const std::vector<uint32_t>& numbers) {
  for (Slot& slot : slots_) {
    if (slot.expr) slot.number = numbers[slot.number];
  }
}

void ExprTable::Grow() {
  std::vector<Slot> old(slots_.empty() ? 256 : 2 * slots_.size());
  std::swap(old, slots_);
  for (const Slot& slot : old) {
    if (slot.expr) slots_[SlotOf(slot.expr)] = slot;
  }
}

}  // namespace collage
