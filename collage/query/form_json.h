#pragma once

#include <vector>

#include "collage/form/form.h"
#include "collage/query/json_reader.h"

namespace collage {

/// Equivalent forms that a user states, a list of {"name", "pattern", "check", "replacement"} (docs/query.md). Errors name the part that is
/// wrong: a field or an operator that does not exist, a name that is taken, a part of the match that the pattern does not name. What is
/// wrong with a replacement at one place of a model only is no error here (FormRule::is_stated).
Result<std::vector<FormRule>> StatedFormsFrom(const JsonReader& reader);

}  // namespace collage
