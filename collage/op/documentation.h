#pragma once

#include <string>

#include "collage/ir/op_def.h"

namespace collage {

/// The operators of a table as Markdown, in the order of the table: docs/ops.md is this of Operators().
std::string Documentation(const OpTable& table);

}  // namespace collage
