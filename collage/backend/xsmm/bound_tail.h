#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collage/backend/xsmm/forms.h"
#include "collage/backend/xsmm/operands.h"

namespace collage::xsmm {

/// What a tail is run on. Numbers are elements.
struct TailTile {
  int64_t rows, columns;
  int64_t result;         ///< where it begins in the result, and in the tensors of its shape
  int64_t result_stride;  ///< from row to row there
  int64_t channel;        ///< of the first column, or of the first row
  bool channels_along_rows = false;
};

/// A tail with its operands. In scratch memory the rows of tiles follow one another: in the result they could lie a power of two apart, and
/// share few sets of the first-level cache.
class BoundTail {
 public:
  BoundTail() = default;
  /// `tail` is one of the chain's; `result` is the layout of its result, and of what has its shape.
  BoundTail(const Chain& chain, const Tail& tail, const Layout& result, Operands& operands);

  /// All of a tail that a loop may do while its results are in registers.
  struct InRegisters {
    std::optional<Source> bias;  ///< one value for each channel
    TailStep::Bounds bounds;
  };
  [[nodiscard]] std::optional<InRegisters> AsInRegisters() const;

  /// Then the product goes to the result itself.
  [[nodiscard]] bool IsEmpty() const { return steps_.empty(); }
  /// Tiles of scratch memory that a run takes, the product's included, which comes first.
  [[nodiscard]] size_t slots() const { return slots_; }
  /// Has what Run will read from memory on its way: its rows are too short and too far apart for the processor to see it coming.
  void Prefetch(const TailTile& tile, std::span<const void* const> inputs) const;
  /// From one slot to the next are `slot` elements.
  void Run(const TailTile& tile, std::span<const void* const> inputs, float* result, float* scratch, size_t slot) const;

 private:
  struct Step {
    TailStep step;
    Source first, second, third;  // of arguments that are no slots
  };

  std::vector<Step> steps_;
  std::vector<Source> wholes_;  // tensors of the result's shape that the steps read
  size_t slots_ = 0;
};

}  // namespace collage::xsmm
