#pragma once

// A sequence is a tuple whose length is known: operators on sequences are resolved while the model is read. An optional is its value, or
// a tuple that holds an empty tuple, which no sequence of tensors is.

#include <vector>

#include "collage/onnx/node_reader.h"

namespace collage::onnx_io {

/// The elements of a sequence; an error for a tensor and for an optional without a value.
Result<std::vector<Expr>> ElementsOf(const Expr& sequence);
/// Those of an input.
Result<std::vector<Expr>> SequenceInput(const NodeReader& node, size_t index);

/// An optional without a value.
Expr Nothing();
bool IsNothing(const Expr& value);

}  // namespace collage::onnx_io
