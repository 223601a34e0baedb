#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// The numbers of expressions, by address. What lies in one page of memory is kept together: expressions are looked up in about the order
/// in which they were made, and a table that scatters them waits for memory at each step once it has outgrown the caches.
class ExprTable {
 public:
  static constexpr uint32_t kNone = static_cast<uint32_t>(-1);

  /// The number of an expression, and whether it was new and got `number`.
  std::pair<uint32_t, bool> Insert(const ExprNode* expr, uint32_t number);
  /// kNone for one that is not there.
  [[nodiscard]] uint32_t Find(const ExprNode* expr) const;
  /// Gives every expression another number: that which stands in `numbers` at its own.
  void Renumber(const std::vector<uint32_t>& numbers);

 private:
  struct Slot {
    const ExprNode* expr = nullptr;  // null: empty
    uint32_t number = 0;
  };
  /// Where it is, or the empty slot where it belongs.
  [[nodiscard]] size_t SlotOf(const ExprNode* expr) const;
  void Grow();

  std::vector<Slot> slots_;  // a power of two, at most half full; linear probing
  size_t count_ = 0;
};

}  // namespace collage
