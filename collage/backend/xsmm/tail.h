#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "collage/backend/xsmm/tile_loops.h"
#include "collage/ir/op_sequence.h"

namespace collage::xsmm {

/// Where a pointwise step finds an argument.
struct TailArgument {
  enum class Kind {
    kSlot,     ///< a tile that the chain computed, in the thread's scratch memory
    kWhole,    ///< a tensor of the result's shape, read where the result's tile lies
    kChannel,  ///< one value for each channel
    kScalar,   ///< one value
    kNone,     ///< there is no such argument
  };
  Kind kind = Kind::kNone;
  size_t slot = 0;   ///< of kSlot
  size_t value = 0;  ///< of tensors: index into the sequence's values
};

struct TailStep {
  /// Numbers below `low` become that, numbers above `high` that.
  struct Bounds {
    float low, high;
  };

  TileLoop loop = nullptr;
  TailArgument first = {}, second = {}, third = {};
  size_t slot = 0;  ///< that the result goes to; the last step's goes to the result of the function
  float alpha = 0;
  float beta = 0;
  /// Set where the step is no more than the sum of a slot and, if `second` is there, of one value for each channel, within bounds.
  std::optional<Bounds> bounds = {};
};

/// What follows a product element by element, as steps over tiles. Slot 0 holds the product.
struct Tail {
  std::vector<TailStep> steps;
  size_t slots = 0;  ///< zero without steps: the product goes to the result itself
};

/// `steps` from the product (index of a value) on as a tail, whose result is that of the last. Channels lie along dimension `channel` of
/// the product. Errors name the operator that no tile loop does.
Result<Tail> ParseTail(const OpSequence& sequence, std::span<const OpSequence::Step> steps, size_t product, size_t channel);

/// True for the operators that a tail may hold, whatever their arguments.
bool MayBeInTail(const OpDef& op);

}  // namespace collage::xsmm
