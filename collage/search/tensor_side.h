#pragma once

#include <cstdint>
#include <vector>

#include "collage/search/picoseconds.h"
#include "collage/search/tables.h"

namespace collage {

/// What some of the consumers of a tensor promise for the layouts in which they may read it: each takes one layout and pays its promise.
/// A gain is what a set of layouts collects from all of them.
class TensorSide {
 public:
  struct Consumer {
    const Picoseconds* promises;  ///< by layout of the tensor
    LayoutMask wish;              ///< layouts of which it takes one; of none: it reads nothing
    bool may_skip;                ///< it may read nothing all the same
  };

  /// `is_due` where the tensor must exist in plain layout as well, as a result that is not made yet.
  TensorSide(const SearchTables& tables, size_t tensor, bool is_due, std::vector<Consumer> consumers);

  /// Reads the promises again.
  void Update();
  /// The least that conversions cost less what is collected, where the tensor was produced in one layout (or Frontier::kAnywhere) and
  /// exists in those of `existing` already.
  [[nodiscard]] Picoseconds Least(size_t produced, LayoutMask existing) const;
  /// Where everything that is wanted exists.
  [[nodiscard]] Picoseconds LeastOfAll() const;
  /// Calls `take(consumer, layout)` for the choices that attain Least of a tensor just produced.
  template <class Take>
  void ForEachTaken(size_t produced, const Take& take) const {
    const LayoutMask open = BestSet(produced, LayoutBit(produced));
    for (size_t i = 0; i < consumers_.size(); ++i) {
      const int layout = BestOf(consumers_[i], open);
      if (layout >= 0) take(i, static_cast<size_t>(layout));
    }
  }

 private:
  // Of more wanted layouts not all sets are tried: each is then judged alone, as if a consumer could pay for several.
  static constexpr size_t kMostEnumerated = 6;
  static constexpr size_t kMostSubsets = size_t{1} << kMostEnumerated;

  [[nodiscard]] LayoutMask MaskOf(size_t subset) const;
  [[nodiscard]] size_t SubsetOf(LayoutMask mask) const;
  [[nodiscard]] LayoutMask BestSet(size_t produced, LayoutMask existing) const;
  [[nodiscard]] Picoseconds GainOf(LayoutMask open) const;
  [[nodiscard]] Picoseconds LeastSeparately(size_t produced, LayoutMask existing, LayoutMask* best) const;
  [[nodiscard]] Picoseconds LeastEnumerated(size_t produced, LayoutMask existing, LayoutMask* best) const;
  /// The layout among these that it pays most for; -1 where it takes none.
  [[nodiscard]] static int BestOf(const Consumer& consumer, LayoutMask open);

  const SearchTables* tables_;
  size_t tensor_;
  std::vector<Consumer> consumers_;
  bool is_due_;
  LayoutMask wanted_;
  std::vector<size_t> wanted_list_;
  std::vector<Picoseconds> gain_;        // by subset of wanted_list_; -kNever where somebody finds nothing
  std::vector<Picoseconds> conversion_;  // by layout in which it may be made, and position in wanted_list_
};

}  // namespace collage
