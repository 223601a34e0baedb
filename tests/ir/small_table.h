#pragma once

#include "collage/ir/op_def.h"

namespace collage {

/// A few operators with simple type rules, enough to write programs with: the ir folder knows no operator.
const OpTable& SmallTable();

}  // namespace collage
