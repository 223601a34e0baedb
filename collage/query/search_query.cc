#include <algorithm>

#include "collage/partition/cover.h"
#include "collage/query/prices.h"
#include "collage/query/queries.h"
#include "collage/query/rule_json.h"
#include "collage/query/search_problem.h"
#include "collage/query/sub_graph_json.h"
#include "collage/query/target_json.h"

namespace collage {
namespace {

struct Question {
  std::vector<SpecPointer> specs;
  FixedPrices prices;
  double penalty = 0;
};

Result<Question> Read(const JsonReader& query) {
  COLLAGE_TRY_STATUS(query.OnlyFields({"targets", "rules", "prices", "transition_penalty", "maximal_regions", "function"}));
  Question question;
  std::optional<JsonReader> rules;
  if (query.Has("rules")) {
    rules = COLLAGE_TRY(query.At("rules"));
    if (!rules->IsObject()) return rules->Expected("an object: a rule for each compiler");
  }
  std::vector<QueryTarget> targets;
  if (query.Has("targets")) {
    for (const JsonReader& item : COLLAGE_TRY(COLLAGE_TRY(query.At("targets")).Items())) {
      const QueryTarget target = COLLAGE_TRY(TargetFrom(item));
      if (target.compiler == "host") continue;
      const bool again =
          std::any_of(targets.begin(), targets.end(), [&](const QueryTarget& other) { return other.compiler == target.compiler; });
      if (again) return item.Wrong("the target \"" + target.compiler + "\" is given twice");
      targets.push_back(target);
    }
  } else {
    for (const auto& [compiler, rule] : COLLAGE_TRY(rules->Fields())) targets.push_back({compiler, compiler});
  }
  // There always is a native spec.
  const bool has_native = std::any_of(targets.begin(), targets.end(), [](const QueryTarget& target) { return target.IsNative(); });
  if (!has_native) targets.push_back({"native", "native"});
  const bool add_maximal = COLLAGE_TRY(query.BoolOr("maximal_regions", false));
  for (const QueryTarget& target : targets) question.specs.push_back(COLLAGE_TRY(SpecFor(target.compiler, query, rules, add_maximal)));
  question.prices = COLLAGE_TRY(FixedPrices::Read(COLLAGE_TRY(query.At("prices"))));
  question.penalty = COLLAGE_TRY(query.NumberOr("transition_penalty", 0));
  if (question.penalty < 0) return COLLAGE_TRY(query.At("transition_penalty")).Expected("a number that is not negative");
  return question;
}

Json PartitionEntry(const NamedFunction& function, const std::string& backend, const SubGraph& sub_graph, double price) {
  return function.Tagged({{"backend", backend}, {"members", function.NamesOf(sub_graph.inside())}, {"price", PriceToJson(price)}});
}

/// Phase 4 of one function: partitions of external backends, joined where that is valid and not slower; the rest is left native.
struct Joined {
  Json partitions = Json::array();
  Json left_native = Json::array();
};

Joined Join(const NamedFunction& function, const Question& question, const std::vector<ChosenCandidate>& chosen) {
  Cover cover;
  for (const ChosenCandidate& one : chosen) {
    const SpecPointer& spec = question.specs[one.backend];
    if (spec->name == "native") continue;
    SubGraph sub_graph = one.sub_graph;
    // A rule that wraps nothing still gives partitions.
    if (BackendOf(sub_graph) != spec->name) {
      sub_graph = sub_graph.WithAttributes(function.graph(), {{"Primitive", AttributeValue(1)}, {"Compiler", spec->name}});
    }
    cover.push_back({{std::move(sub_graph), spec}, {}});
  }
  const auto price = [&](const CandidatePartition& partition) {
    return question.prices.Of(partition.spec->name, partition.sub_graph.operator_count()).value_or(0) + question.penalty;
  };
  // Sums of prices are taken in different orders.
  constexpr double kRounding = 1e-9;
  cover = JoinAdjacent(
      function.graph(), std::move(cover), [&](const CandidatePartition& joined, const CandidatePartition& a, const CandidatePartition& b) {
        const double apart = price(a) + price(b);
        return joined.sub_graph.IsValid(function.graph(), {.allow_taps = true}) && price(joined) <= apart + kRounding * apart;
      });
  Joined joined;
  IndexSet external;
  for (const ChosenPartition& partition : cover) {
    const SubGraph& sub_graph = partition.candidate.sub_graph;
    external |= sub_graph.inside();
    joined.partitions.push_back(
        PartitionEntry(function, partition.candidate.spec->name, sub_graph, price(partition.candidate) - question.penalty));
  }
  std::vector<PostDfsIndex> native;
  for (PostDfsIndex node = 0; node < function.graph().size(); ++node) {
    if (CalledOp(function.graph()[node].expr) && !external.Contains(node)) native.push_back(node);
  }
  joined.left_native = function.NamesOf(std::span<const PostDfsIndex>(native));
  return joined;
}

}  // namespace

Result<SpecPointer> SpecFor(const std::string& name, const JsonReader& query, const std::optional<JsonReader>& rules, bool add_maximal) {
  const bool is_native = name == "native";
  const std::string compiler = is_native ? std::string() : name;
  const bool stated = rules && rules->Has(name);
  if (!stated && !is_native) return query.Wrong("\"rules\" gives no rule for the target \"" + name + "\"");
  Rule rule = stated ? COLLAGE_TRY(RuleFrom(COLLAGE_TRY(rules->At(name)), compiler)) : DefaultNativeRule();
  if (add_maximal) {
    const Rule maximal = stated ? COLLAGE_TRY(MaximalRuleFor(COLLAGE_TRY(rules->At(name)), compiler)) : NativeFusionRule();
    rule = UnionRule({rule, maximal});
  }
  PartitionSpec spec{name, {Target{DeviceKind::kCpu, {{"compiler", name}}}}, std::move(rule)};
  return std::make_shared<const PartitionSpec>(std::move(spec));
}

Result<Json> AnswerSearch(const QueryProgram& program, const JsonReader& query) {
  const Question question = COLLAGE_TRY(Read(query));
  std::vector<size_t> counts(question.specs.size(), 0);
  double price = 0;
  Json partitions = Json::array();
  Json joined = Json::array();
  Json left_native = Json::array();
  for (const NamedFunction* function : COLLAGE_TRY(program.FunctionsOf(query))) {
    const std::vector<CandidatePartition> candidates = AllCandidates(function->graph(), question.specs);
    for (const CandidatePartition& candidate : candidates) {
      const auto spec = std::find(question.specs.begin(), question.specs.end(), candidate.spec);
      ++counts[static_cast<size_t>(spec - question.specs.begin())];
    }
    const std::vector<ChosenCandidate> chosen =
        COLLAGE_TRY(CheapestCover(*function, candidates, question.specs, question.prices, question.penalty));
    for (const ChosenCandidate& one : chosen) {
      price += one.price + question.penalty;
      partitions.push_back(PartitionEntry(*function, question.specs[one.backend]->name, one.sub_graph, one.price));
    }
    Joined after = Join(*function, question, chosen);
    for (Json& entry : after.partitions) joined.push_back(std::move(entry));
    for (Json& name : after.left_native) left_native.push_back(std::move(name));
  }
  Json candidate_counts = Json::object();
  for (size_t i = 0; i < counts.size(); ++i) candidate_counts[question.specs[i]->name] = counts[i];
  return Json{{"candidate_counts", std::move(candidate_counts)},
              {"price", PriceToJson(price)},
              {"optimum",
               {{"count", partitions.size()},
                {"partitions", std::move(partitions)},
                {"joined", std::move(joined)},
                {"left_native", std::move(left_native)}}}};
}

}  // namespace collage
