#pragma once

#include <cstddef>

#include "collage/ir/module.h"
#include "collage/support/result.h"

namespace collage {

/// Errors where an operator needs more bytes than `available` for its operands and its result, which are in memory at once; and where the
/// inputs and the results of the module do. It says which, how large they are, and what there is.
Status CheckMemory(const IRModule& module, size_t available);

}  // namespace collage
