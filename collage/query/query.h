#pragma once

#include <string>
#include <string_view>

#include "collage/query/json_reader.h"

namespace collage {

/// Answers the cases of a document, one or a list of them, with a list of {"name", "answer"} or, for a case that cannot be answered,
/// {"name", "error"}, in the same order. Errors when the text is no JSON, or neither an object nor a list of objects.
Result<Json> AnswerQueries(std::string_view text);

}  // namespace collage
