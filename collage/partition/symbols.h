#pragma once

#include <string>

#include "collage/dataflow/sub_graph.h"
#include "collage/ir/module.h"
#include "collage/support/name_supply.h"

namespace collage {

/// Marks the names of a module's functions and all its global_symbols as taken.
void ReserveSymbols(const IRModule& module, NameSupply& names);

/// "collage_<compiler>_<label>"; the names of a partition's operators and composites make the label.
std::string SymbolOf(const DataflowGraph& graph, const SubGraph& sub_graph, const std::string& compiler);

}  // namespace collage
