#pragma once

#include "collage/pattern/pattern.h"
#include "collage/query/json_reader.h"

namespace collage {

/// Patterns, and what is built of their matches, are read by recursion: so deep at most.
constexpr size_t kDeepestPattern = 200;

/// The pattern language of `collage query` (docs/query.md). Errors name the part that is wrong: an unknown field or operator, a
/// missing part, "<>" outside of an optional, "same" of a name that nothing carries.
Result<Pattern> PatternFrom(const JsonReader& reader);

}  // namespace collage
