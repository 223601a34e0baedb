#pragma once

#include <functional>
#include <string>

#include "collage/pattern/matcher.h"
#include "collage/pattern/rule.h"

namespace collage {

/// Calls `visit` with every match of a backend's rule that has an inside, before its check: those of its pattern with roots ascending, or
/// those that grow as its FusionRule says, by the call that they begin with, smaller ones first. Each set of nodes is given once.
void ForEachMatch(const DataflowGraph& graph, const PatternRule& rule, const std::function<void(PatternMatch)>& visit);

/// What a match becomes: the rule's label, followed by the operators that joined where it grew: "dnnl.conv2d_bias_add_relu".
std::string LabelOf(const PatternRule& rule, const DataflowGraph& graph, const IndexSet& inside);

}  // namespace collage
