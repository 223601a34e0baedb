#pragma once

#include <cstddef>
#include <optional>

#include "collage/ir/op_def.h"

namespace collage {

/// The argument of which the result is a copy with some elements replaced, if any. The operator's reference kernel copies nothing where the
/// result is given the argument's own memory.
std::optional<size_t> UpdatedArgument(const OpDef& op);

}  // namespace collage
