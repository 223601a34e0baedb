#pragma once

#include "collage/ir/module.h"

namespace collage {

/// Checks what every pass must keep:
/// * there is a @main;
/// * every variable is bound by exactly one parameter or let, and is used only where that binding is visible (for a let: in its
///   body, and inside its value when that is a function literal);
/// * every type is what the operators' rules give for the children as they are; "@name" has the type of that function;
/// * a function with "Primitive" or "Composite" uses no variable from outside of it;
/// * one with "Compiler" is Primitive and has a "global_symbol", which no other function has.
/// The error names the function and the expression. Linear in the size of the module and free of recursion.
Status Verify(const IRModule& module);

}  // namespace collage
