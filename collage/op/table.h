#pragma once

#include "collage/ir/op_def.h"

namespace collage {

/// Every operator that Collage knows, built on first use from the families of this folder.
const OpTable& Operators();

}  // namespace collage
