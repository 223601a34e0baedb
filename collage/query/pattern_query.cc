#include <unordered_set>

#include "collage/pattern/matcher.h"
#include "collage/query/conditions_json.h"
#include "collage/query/pattern_json.h"
#include "collage/query/queries.h"
#include "collage/query/rule_json.h"

namespace collage {
namespace {

class PatternQuery {
 public:
  PatternQuery(const NamedFunction& function, const Pattern& pattern, const MatchCheck& check, const SubGraphConfig& config)
      : function_(function), matcher_(function.graph()), pattern_(pattern), check_(check), config_(config) {}

  /// One entry for each different inside of a match with this root, the preferred one first.
  std::vector<Json> Matches(PostDfsIndex root) {
    std::vector<Json> entries;
    std::unordered_set<IndexSet> seen;
    for (const PatternMatch& match : matcher_.Matches(pattern_, root)) {
      if (check_ && !check_(match.match).accepted) continue;
      if (seen.insert(match.inside).second)
        entries.push_back({{"inside", function_.NamesOf(match.inside)}, {"violates", Violates(match.inside)}});
    }
    return entries;
  }

  Json Verdict(PostDfsIndex root) {
    const std::vector<Json> matches = Matches(root);
    Json verdict = {{"match", !matches.empty()}};
    verdict["inside"] = matches.empty() ? Json::array() : matches[0]["inside"];
    verdict["violates"] = matches.empty() ? Json::array() : matches[0]["violates"];
    return verdict;
  }

 private:
  [[nodiscard]] Json Violates(const IndexSet& inside) const {
    Json violates = Json::array();
    if (inside.Empty()) return violates;
    const SubGraph sub_graph(function_.graph(), inside);
    for (const Violation violation : sub_graph.Violations(function_.graph(), config_)) violates.push_back(Name(violation));
    return violates;
  }

  const NamedFunction& function_;
  PatternMatcher matcher_;
  const Pattern& pattern_;
  const MatchCheck& check_;
  const SubGraphConfig& config_;
};

}  // namespace

Result<Json> AnswerPattern(const QueryProgram& program, const JsonReader& query) {
  COLLAGE_TRY_STATUS(query.OnlyFields({"pattern", "root", "roots", "check", "config", "function"}));
  const Pattern pattern = COLLAGE_TRY(PatternFrom(COLLAGE_TRY(query.At("pattern"))));
  const MatchCheck check = COLLAGE_TRY(OptionalCheck(query));
  const SubGraphConfig config = COLLAGE_TRY(OptionalConfig(query));
  if (query.Has("root")) {
    const JsonReader name = COLLAGE_TRY(query.At("root"));
    const NamedFunction& function = *COLLAGE_TRY(program.FunctionOf(query, name));
    return function.Tagged(PatternQuery(function, pattern, check, config).Verdict(COLLAGE_TRY(function.Node(name))));
  }
  const JsonReader roots = COLLAGE_TRY(query.At("roots"));
  if (!roots.IsText("all")) {
    const NamedFunction& function = *COLLAGE_TRY(program.FunctionOf(query, roots));
    PatternQuery asked(function, pattern, check, config);
    Json verdicts = Json::array();
    for (const JsonReader& name : COLLAGE_TRY(roots.Items())) {
      Json entry = {{"root", COLLAGE_TRY(name.String())}};
      entry.update(asked.Verdict(COLLAGE_TRY(function.Node(name))));
      verdicts.push_back(function.Tagged(std::move(entry)));
    }
    return Json{{"count", verdicts.size()}, {"verdicts", std::move(verdicts)}};
  }
  Json matches = Json::array();
  for (const NamedFunction* function : COLLAGE_TRY(program.FunctionsOf(query))) {
    PatternQuery asked(*function, pattern, check, config);
    for (PostDfsIndex root = 0; root < function->graph().size(); ++root) {
      if (function->NameOf(root).empty()) continue;
      for (const Json& match : asked.Matches(root)) {
        Json entry = {{"root", function->NameOf(root)}};
        entry.update(match);
        matches.push_back(function->Tagged(std::move(entry)));
      }
    }
  }
  return Json{{"count", matches.size()}, {"matches", std::move(matches)}};
}

}  // namespace collage
