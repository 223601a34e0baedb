#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage {

/// Numbers by hash, in many small tables side by side in one array. What is asked about one node after another is kept by node: a single
/// table would be met at random places, and wait for memory each time once there are hundreds of thousands in it.
class NumberTables {
 public:
  /// False when the table has a number under this hash for which `is_equal` holds; otherwise that given is added.
  template <class IsEqual>
  bool Insert(size_t table, uint64_t hash, size_t number, const IsEqual& is_equal) {
    if (table >= tables_.size()) tables_.resize(std::max(table + 1, 2 * tables_.size()));
    if (4 * (tables_[table].count + 1) > 3 * tables_[table].capacity) Grow(tables_[table]);
    Slot& slot = slots_[SlotOf(tables_[table], static_cast<uint32_t>(hash), is_equal)];
    if (slot.number != 0) return false;
    slot = {static_cast<uint32_t>(hash), static_cast<uint32_t>(number + 1)};
    ++tables_[table].count;
    return true;
  }
  template <class IsEqual>
  [[nodiscard]] bool Contains(size_t table, uint64_t hash, const IsEqual& is_equal) const {
    if (table >= tables_.size() || tables_[table].count == 0) return false;
    return slots_[SlotOf(tables_[table], static_cast<uint32_t>(hash), is_equal)].number != 0;
  }
  /// Leaves all tables empty and keeps their memory.
  void Clear() {
    tables_.clear();
    slots_.clear();
  }

 private:
  struct Slot {
    uint32_t hash;
    uint32_t number;  // plus one; zero: empty
  };
  /// Where it lies in the array; at most three quarters full, linear probing.
  struct Table {
    size_t begin = 0;
    uint32_t capacity = 0;  // a power of two
    uint32_t count = 0;
  };

  /// Of the equal number, or the empty one where it belongs.
  template <class IsEqual>
  [[nodiscard]] size_t SlotOf(const Table& table, uint32_t hash, const IsEqual& is_equal) const {
    const uint32_t mask = table.capacity - 1;
    for (uint32_t at = hash & mask;; at = (at + 1) & mask) {
      const Slot& slot = slots_[table.begin + at];
      if (slot.number == 0 || (slot.hash == hash && is_equal(slot.number - 1))) return table.begin + at;
    }
  }

  void Grow(Table& table) {
    const Table old = table;
    table = {slots_.size(), old.capacity == 0 ? 8 : 2 * old.capacity, old.count};
    slots_.resize(slots_.size() + table.capacity, Slot{0, 0});
    for (size_t i = old.begin; i < old.begin + old.capacity; ++i) {
      const Slot slot = slots_[i];
      if (slot.number != 0) slots_[SlotOf(table, slot.hash, [](uint32_t) { return false; })] = slot;
    }
  }

  std::vector<Table> tables_;
  std::vector<Slot> slots_;
};

}  // namespace collage
