#pragma once

#include <vector>

#include "collage/pattern/matcher.h"

namespace collage {

/// The matches of a rule that its check accepts and that can be one function of one result. What calls nothing is no operator of a
/// library: an optional part may leave a variable or a constant alone.
std::vector<PatternMatch> ValidMatches(const DataflowGraph& graph, const PatternRule& rule);

}  // namespace collage
