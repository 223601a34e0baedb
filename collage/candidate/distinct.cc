#include "collage/candidate/distinct.h"

#include <utility>

namespace collage {

bool DistinctSubGraphs::Add(SubGraph sub_graph) {
  if (2 * (list_.size() + 1) > slots_.size()) Grow();
  const auto hash = static_cast<uint32_t>(sub_graph.Hash());
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  for (; slots_[at].number != 0; at = (at + 1) & mask) {
    if (slots_[at].hash == hash && list_[slots_[at].number - 1] == sub_graph) return false;
  }
  list_.push_back(std::move(sub_graph));
  slots_[at] = {hash, static_cast<uint32_t>(list_.size())};
  return true;
}

void DistinctSubGraphs::Grow() {
  std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size(), Slot{0, 0});
  std::swap(old, slots_);
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.number == 0) continue;
    size_t at = slot.hash & mask;
    while (slots_[at].number != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

}  // namespace collage
