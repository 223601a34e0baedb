#pragma once

#include <random>
#include <string>

namespace collage {

/// The bytes of an ONNX model with some of its structure changed: attributes, shapes, types, values of shape tensors, names of inputs and
/// outputs (so that values come twice, never, or from themselves), lengths of data, operators, opsets, the order of nodes; in bodies of
/// control flow too. The message stays well-formed. The same for equal bytes and states of `random`.
std::string MutatedModel(const std::string& model, std::mt19937_64& random);

}  // namespace collage
