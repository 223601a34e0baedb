#pragma once

#include "collage/candidate/gather.h"
#include "collage/candidate/rules.h"
#include "collage/query/json_reader.h"

namespace collage {

/// A rule tree, {"rule": R, "of": ..} (docs/query.md). `compiler` is what Primitive adds to its functions; empty for native.
Result<Rule> RuleFrom(const JsonReader& reader, const std::string& compiler);

/// The rule that Maximal adds for a target whose rule is this tree: of an external one the regions that partition_for_<backend>
/// would take, which are made of what the base rules of the tree find; of the native one the groups of its fusion pass.
Result<Rule> MaximalRuleFor(const JsonReader& reader, const std::string& compiler);
/// The native target's when no tree is stated for it: every candidate that operator fusion could make.
Rule DefaultNativeRule();
Rule NativeFusionRule();

/// {"max_exits", "max_depth", "allow_taps"}; absent fields do not limit, taps are not allowed unless told so.
Result<SubGraphConfig> ConfigFrom(const JsonReader& reader);
/// The field "config" of an object that may lack it.
Result<SubGraphConfig> OptionalConfig(const JsonReader& object);

/// What "-partition_rule=NAME" may name: an object with a rule tree for each name. Which compiler a tree is for, the target says.
Result<StatedRules> StatedRulesFrom(const JsonReader& reader);

}  // namespace collage
