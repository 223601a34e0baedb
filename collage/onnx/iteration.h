#pragma once

// What Loop and Scan have in common: states that a body maps to the next ones, iteration after iteration, and slices that it gives on the
// way and that are stacked.
//
// A loop becomes a function that calls itself as the last thing it does:
//
//   def @loop(%index, %go_on, states, stacks, captured) {
//     if (%go_on) { @loop(add(%index, 1), ..., scatter_nd(stack, %index, slice), captured) } else { (states, stacks) }
//   }
//
// That is the one form whose types must be known once for all iterations. Where they cannot be (a state grows, a shape is made from the
// iteration number) the iterations are written one after another, as long as it is known at each whether another follows. The same is done
// where everything is constant, so that such loops are folded. Unrolling all short loops was rejected: plans and compile time would
// depend on a threshold, and the body's partitions are priced once in either form.

#include <functional>
#include <vector>

#include "collage/onnx/node_reader.h"

namespace collage::onnx_io {

struct Iteration {
  const OnnxGraph* body = nullptr;
  Expr trip_count;               ///< int64 scalar; null: no bound
  Expr condition;                ///< bool scalar, whether the first iteration takes place
  std::vector<Expr> states;      ///< before the first iteration
  size_t slices = 0;             ///< outputs of the body that are stacked
  bool gives_condition = false;  ///< the body's first output says whether another iteration follows
  Expr length;                   ///< int64 scalar; states stay and slices are zeros from that iteration on; null: from none
  /// The body's inputs from the number of the iteration (an int64 scalar) and the states.
  std::function<Result<std::vector<Expr>>(const Expr& index, const std::vector<Expr>& states)> inputs;
  /// What `inputs` reads beside its arguments.
  std::vector<Expr> sequences;
  std::vector<bool> backward;  ///< one for each of `slices`: the first iteration gives the last slice
  std::string function_name;   ///< "loop"
};

/// The states after the last iteration, then the stacks, each with a new first dimension. Errors: types that are not known.
Result<std::vector<Expr>> ReadIteration(NodeReader& node, const Iteration& iteration);

/// Tensors of one type along a new first dimension.
Result<Expr> Stack(NodeReader& node, std::vector<Expr> slices);
/// A tensor of one element as a scalar; an error for more elements.
Result<Expr> AsScalar(NodeReader& node, const Expr& value, const std::string& meaning);

}  // namespace collage::onnx_io
