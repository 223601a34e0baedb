#pragma once

#include <set>
#include <string>
#include <vector>

#include "collage/pattern/rule.h"
#include "collage/support/result.h"

namespace collage {

/// A pattern that is malformed can never match, which nobody would notice: an operator that does not exist, an alternative of
/// nothing. Errors say which.
Status CheckPattern(const Pattern& pattern);

/// All names under which parts of the pattern capture what they match.
std::set<std::string> CapturedNames(const Pattern& pattern);

/// Every pattern of a table, and its label. Errors name the rule.
Status CheckPatterns(const std::vector<PatternRule>& table);

}  // namespace collage
