#pragma once

#include "collage/ir/module.h"

namespace collage {

/// Whether a type is that of a function, or of a tuple that has one.
bool HoldsFunction(const Type& type);

/// `function` with each variable of a let replaced by its value: the language is pure, so a value may be computed where it is used. Errors:
/// a let of a function that calls itself.
Result<Expr> WithoutLets(const Expr& function);

/// A module in which only functions of the module and kernels are called. A function that is a value is written out where it is called:
///
///   fn (%x) { let %f = fn (%y) { add(%x, %y) }; %f(%f(%x)) }      becomes      fn (%x) { add(%x, add(%x, %x)) }
///
/// One that an if chooses is called in either branch. A function of the module that takes or gives functions is written out too, unless it
/// calls itself. A let of a function that calls itself becomes a function of the module, which has what it captures as further parameters.
/// A module without such values stays as it is. Errors name the place of what remains: what a recursion takes as a function, say.
Result<IRModule> InlineClosures(const IRModule& module);

}  // namespace collage
