#pragma once

#include <optional>
#include <vector>

#include "collage/onnx/control_graph.h"

namespace collage::onnx_io {

/// What a Loop carries that stands for a circle of functions, entered at one of them.
struct LoopForm {
  /// A value that some iteration changes, or that others than the first function take: a parameter of a header.
  struct State {
    size_t header = 0;  ///< of `headers`
    size_t parameter = 0;
    TensorType type;
  };
  /// Where a value is found: in a state, or outside, as an argument of the call that enters.
  struct Slot {
    bool is_state = false;
    size_t index = 0;  ///< of the state, or of the argument

    bool operator==(const Slot&) const = default;
  };
  /// A first function that does nothing but branch on a parameter: one side is the next iteration, the other the end.
  struct Natural {
    size_t state = 0;           ///< that of the condition
    bool goes_on_where = true;  ///< the condition holds, or where it does not
  };

  std::vector<size_t> headers;
  size_t first = 0;  ///< of them, the one that is entered
  std::vector<State> states;
  std::vector<std::vector<Slot>> parameters;  ///< of each header
  /// Where each result is found behind the last iteration; nothing where it has to be carried for itself.
  std::vector<std::optional<Slot>> results;
  std::optional<Natural> natural;
};

/// The form of the circle of `entry`, which must be a header of it.
LoopForm FindLoopForm(const PartitionedModel& model, const ControlGraph& graph, size_t entry);

}  // namespace collage::onnx_io
