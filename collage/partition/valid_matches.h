#pragma once

#include <vector>

#include "collage/pattern/matcher.h"

namespace collage {

/// The matches of a rule that its check accepts and that can be one function of one result.
std::vector<PatternMatch> ValidMatches(const DataflowGraph& graph, const PatternRule& rule);

}  // namespace collage
