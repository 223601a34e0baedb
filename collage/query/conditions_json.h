#pragma once

#include <functional>

#include "collage/candidate/rules.h"
#include "collage/pattern/rule.h"
#include "collage/query/json_reader.h"

namespace collage {

using MatchCheck = std::function<Verdict(const Match&)>;

/// The check of a match: {"path": [0, 1], "attribute": "groups", "equals": 1} or {"path": [0], "batch_is": 1}, or a list of which
/// all must hold. The path leads from the root of the match through arguments (fields of a tuple, the tuple of a projection).
Result<MatchCheck> CheckFrom(const JsonReader& reader);
/// The field "check" of an object; empty when it is absent or null.
Result<MatchCheck> OptionalCheck(const JsonReader& object);

/// What a backend supports: {"operator": "add"}, optionally with "argument_dtype" (of every tensor argument), or a list of which one
/// must hold.
Result<CallPredicate> SupportsFrom(const JsonReader& reader);

}  // namespace collage
