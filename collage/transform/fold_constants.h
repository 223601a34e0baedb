#pragma once

#include <cstddef>

#include "collage/ir/module.h"

namespace collage {

struct FoldConstantsOptions {
  /// A result larger than this is kept only when it is at most twice the size of the constants it comes from: zeros(shape=...)
  /// and broadcasts of a scalar stay operators.
  size_t small_bytes = size_t{64} << 10;
};

/// Computes calls of operators whose arguments are constants, with the reference kernels; puts constants and variables that let
/// binds where they are used; resolves projections of tuples and branches of known conditions.
///
///     let %k = add(1f, 2f);  multiply(%x, %k)                before
///     multiply(%x, 3f)                                       after
///
/// The first of the safe passes: what the others look for (weights, scales, exponents) must be plain constants.
Result<IRModule> FoldConstants(const IRModule& module, const FoldConstantsOptions& options = {});

}  // namespace collage
