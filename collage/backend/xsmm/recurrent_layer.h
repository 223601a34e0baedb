#pragma once

#include <vector>

#include "collage/backend/xsmm/activation_loops.h"
#include "collage/ir/op_sequence.h"
#include "collage/op/recurrent.h"

namespace collage::xsmm {

/// nn.lstm, nn.gru or nn.rnn, as its call says it.
struct RecurrentLayer {
  enum class Kind { kRnn, kGru, kLstm };
  enum Argument : size_t { kData, kWeight, kRecurrentWeight, kBias, kLengths, kInitialState, kInitialCell, kPeephole };

  const OpSequence* sequence = nullptr;
  const OpSequence::Step* step = nullptr;
  Kind kind = Kind::kRnn;
  int64_t gates = 1;
  Recurrence shape{};
  std::vector<ActivationLoops> activations;  ///< of each direction in turn
  bool couples_forget = false;               ///< the forget gate is one minus the input gate
  bool resets_after_product = false;         ///< the reset gate multiplies R h + b, not h

  [[nodiscard]] const OpSequence::Value& Value(Argument argument) const { return sequence->values[step->inputs[argument]]; }
  [[nodiscard]] const float* Constant(Argument argument) const { return Value(argument).constant->Data<float>(); }
};

/// Whether a function is one of these and nothing else.
bool IsRecurrentLayer(const OpSequence& sequence);

/// Of such a function, which must outlive the result. Errors on what no kernel here takes: other types than float32, weights that are
/// computed, activations without a loop.
Result<RecurrentLayer> ParseRecurrentLayer(const OpSequence& sequence);

}  // namespace collage::xsmm
