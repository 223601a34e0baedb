#pragma once

#include <unordered_map>
#include <vector>

#include "collage/ir/op_sequence.h"

namespace collage {

/// By how much each result of a function may differ because a value on the way was quantised to its other neighbour (Compare in
/// tensor/agreement.h): one where the result is such integers, the scale of those it was last computed from where it is floating point, and
/// 0 where nothing is quantised. `scales`: what calls that quantise were given where that is no constant.
std::vector<double> QuantisationSteps(const OpSequence& sequence, const std::unordered_map<const ExprNode*, double>& scales = {});

}  // namespace collage
