#pragma once

#include <string>

#include "collage/ir/module.h"
#include "collage/query/program.h"

namespace collage {

/// A text attribute of a function; empty without it.
std::string TextOf(const Function& function, const char* attribute);

/// The kernel, a Primitive or Composite function, that the program itself calls there: a literal, one bound by let or one of the
/// module. Null for any other expression.
const Function* CalledKernel(const IRModule& module, const DataflowGraph& graph, PostDfsIndex node);

/// As an entry of "composites": a composite that the program itself calls there.
Json CalledComposite(const NamedFunction& function, PostDfsIndex node, const Function& kernel);

}  // namespace collage
