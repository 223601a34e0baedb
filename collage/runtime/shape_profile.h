#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// Name and type of a tensor that enters or leaves a model; always in row-major order.
struct NamedType {
  std::string name;
  TensorType type;
};

/// The shapes for which a program has a plan: what a run is given and what it gives then. A program with several has the same inputs and
/// outputs in each.
struct ShapeProfile {
  std::vector<NamedType> inputs;
  std::vector<NamedType> outputs;
};

/// Its inputs as `--shape` writes them: "x=1x3x224x224 mask=1x224".
std::string ToString(const ShapeProfile& profile);
/// All of them on one line: "[x=1x8], [x=4x8]".
std::string ListOf(const std::vector<ShapeProfile>& profiles);

/// Which profile takes these inputs. Errors say which input is not as expected; with several profiles, which there are.
Result<size_t> ProfileFor(std::span<const Tensor> inputs, const std::vector<ShapeProfile>& profiles);

/// Errors where number or types of tensors are others than these; `what` is "input" or "output".
Status CheckTensors(const char* what, std::span<const Tensor> tensors, const std::vector<NamedType>& expected);

}  // namespace collage
