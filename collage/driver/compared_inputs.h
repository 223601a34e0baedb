#pragma once

#include <vector>

#include "collage/ir/module.h"

namespace collage {

/// Of each tensor that the main function of an outlined program takes, in their order: numbers that it asks whether the tensor equals.
/// Random inputs take them at times, since whole branches may depend on it, such as those of a model of two sampling rates. Only of tensors
/// of one element, which conditions are made of; each number has the tensor's type.
std::vector<std::vector<Tensor>> ComparedWith(const IRModule& outlined);

}  // namespace collage
