#include "collage/query/rule_json.h"

#include <algorithm>
#include <array>

#include "collage/partition/fuse.h"
#include "collage/query/conditions_json.h"
#include "collage/query/pattern_json.h"

namespace collage {
namespace {

constexpr size_t kDeepestRule = 100;
constexpr size_t kMostNativeOperators = 256;

Result<OpKind> KindFrom(const JsonReader& reader) {
  const std::string name = COLLAGE_TRY(reader.String());
  std::string all;
  for (int kind = 0; kind <= static_cast<int>(OpKind::kOpaque); ++kind) {
    const std::string_view known = Name(static_cast<OpKind>(kind));
    if (known == name) return static_cast<OpKind>(kind);
    all += (all.empty() ? "" : ", ") + std::string(known);
  }
  return reader.Wrong("there is no fusion kind \"" + name + "\", expected one of " + all);
}

Result<Combiner> CombinerFrom(const JsonReader& reader) {
  if (!reader.IsObject() || reader.value().size() != 1) return reader.Expected("a combiner: an object with one field");
  if (reader.Has("by_kind")) {
    const JsonReader kinds = COLLAGE_TRY(reader.At("by_kind"));
    const std::vector<JsonReader> pair = COLLAGE_TRY(kinds.Items());
    if (pair.size() != 2) return kinds.Expected("two fusion kinds: of what stands upstream and of what stands downstream");
    return Combiner::ByKind(COLLAGE_TRY(KindFrom(pair[0])), COLLAGE_TRY(KindFrom(pair[1])));
  }
  struct Named {
    const char* field;
    Combiner combiner;
  };
  const std::array<Named, 5> kNamed = {{{"tuple_argument", Combiner::TupleArgument()},
                                        {"tuple_projection", Combiner::TupleProjection()},
                                        {"constant", Combiner::Constant()},
                                        {"any", Combiner::Any()},
                                        {"siblings", Combiner::Siblings()}}};
  for (const Named& named : kNamed) {
    if (!reader.Has(named.field)) continue;
    const JsonReader flag = COLLAGE_TRY(reader.At(named.field));
    if (!COLLAGE_TRY(flag.Bool())) return flag.Expected("true");
    return named.combiner;
  }
  return reader.Expected("a combiner: by_kind, tuple_argument, tuple_projection, constant, any or siblings");
}

/// The groups that operator fusion makes, and no others.
class FusionPass final : public PartitionRule {
 public:
  void ForEach(const DataflowGraph& graph, std::vector<Refusal>*, const Visitor& visit) const override {
    for (IndexSet& group : FindFusionGroups(graph)) visit(SubGraph(graph, std::move(group)));
  }
};

class RuleReader {
 public:
  explicit RuleReader(std::string compiler) : compiler_(std::move(compiler)) {}

  Result<Rule> Read(const JsonReader& reader) {
    if (depth_ >= kDeepestRule) return reader.Wrong("rules are nested more than " + std::to_string(kDeepestRule) + " deep");
    ++depth_;
    Result<Rule> rule = Named(reader);
    --depth_;
    return rule;
  }

 private:
  using Form = std::pair<const char*, Result<Rule> (RuleReader::*)(const JsonReader&)>;

  Result<Rule> Named(const JsonReader& reader) {
    static const std::array<Form, 11> kForms = {{{"DFPattern", &RuleReader::DFPattern},
                                                 {"OpPredicate", &RuleReader::OpPredicate},
                                                 {"OpCallByKind", &RuleReader::OpCallByKind},
                                                 {"Composite", &RuleReader::Composite},
                                                 {"Primitive", &RuleReader::Primitive},
                                                 {"Union", &RuleReader::Union},
                                                 {"Combine", &RuleReader::Combine},
                                                 {"OnlyValid", &RuleReader::OnlyValid},
                                                 {"Host", &RuleReader::Host},
                                                 {"Maximal", &RuleReader::Maximal},
                                                 {"MaxCoalesce", &RuleReader::MaxCoalesce}}};
    const JsonReader field = COLLAGE_TRY(reader.At("rule"));
    const std::string name = COLLAGE_TRY(field.String());
    std::string all;
    for (const auto& [known, read] : kForms) {
      if (name == known) return (this->*read)(reader);
      all += (all.empty() ? "" : ", ") + std::string(known);
    }
    return field.Wrong("there is no rule \"" + name + "\", expected one of " + all);
  }

  Result<std::vector<Rule>> SubRules(const JsonReader& reader) {
    std::vector<Rule> rules;
    const JsonReader of = COLLAGE_TRY(reader.At("of"));
    for (const JsonReader& item : of.ItemsOrSelf()) rules.push_back(COLLAGE_TRY(Read(item)));
    return rules;
  }

  /// A list of several sub-rules stands for their union.
  Result<Rule> SubRule(const JsonReader& reader) {
    std::vector<Rule> rules = COLLAGE_TRY(SubRules(reader));
    if (rules.empty()) return COLLAGE_TRY(reader.At("of")).Expected("a rule");
    return rules.size() == 1 ? rules[0] : UnionRule(std::move(rules));
  }

  Result<Rule> DFPattern(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"rule", "pattern", "check"}));
    Pattern pattern = COLLAGE_TRY(PatternFrom(COLLAGE_TRY(reader.At("pattern"))));
    return DFPatternRule("DFPattern", std::move(pattern), COLLAGE_TRY(OptionalCheck(reader)));
  }

  Result<Rule> OpPredicate(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"rule", "supports", "pull_constants"}));
    const bool pull = COLLAGE_TRY(reader.BoolOr("pull_constants", false));
    return OpPredicateRule("OpPredicate", COLLAGE_TRY(SupportsFrom(COLLAGE_TRY(reader.At("supports")))), pull);
  }

  Result<Rule> OpCallByKind(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"rule"}));
    return OpCallByKindRule();
  }

  Result<Rule> Composite(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"rule", "label", "of"}));
    std::string label = COLLAGE_TRY(COLLAGE_TRY(reader.At("label")).String());
    return CompositeRule(std::move(label), COLLAGE_TRY(SubRule(reader)));
  }

  Result<Rule> Primitive(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"rule", "of"}));
    return PrimitiveRule(compiler_, COLLAGE_TRY(SubRule(reader)));
  }

  Result<Rule> Union(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"rule", "of"}));
    return UnionRule(COLLAGE_TRY(SubRules(reader)));
  }

  Result<Rule> Combine(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"rule", "combiners", "max_depth", "of"}));
    const JsonReader list = COLLAGE_TRY(reader.At("combiners"));
    std::vector<Combiner> combiners;
    for (const JsonReader& item : COLLAGE_TRY(list.Items())) combiners.push_back(COLLAGE_TRY(CombinerFrom(item)));
    const CombineLimits limits{.max_depth = COLLAGE_TRY(reader.CountOr("max_depth", 0)), .keep_invalid = true};
    return CombineRule(std::move(combiners), limits, COLLAGE_TRY(SubRule(reader)));
  }

  Result<Rule> OnlyValid(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"rule", "config", "of"}));
    const SubGraphConfig config = COLLAGE_TRY(OptionalConfig(reader));
    return OnlyValidRule(config, COLLAGE_TRY(SubRule(reader)));
  }

  Result<Rule> Host(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"rule"}));
    return HostRule();
  }

  Result<Rule> Maximal(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"rule", "of"}));
    return MaximalRule(COLLAGE_TRY(SubRule(reader)));
  }

  Result<Rule> MaxCoalesce(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"rule", "of"}));
    return MaxCoalesceRule(COLLAGE_TRY(SubRule(reader)));
  }

  std::string compiler_;
  size_t depth_ = 0;
};

}  // namespace

Result<Rule> RuleFrom(const JsonReader& reader, const std::string& compiler) { return RuleReader(compiler).Read(reader); }

Result<Rule> MaximalRuleFor(const JsonReader& reader, const std::string& compiler) {
  bool is_wrapped = false;
  const auto is_around = [](const JsonReader& rule) {
    constexpr std::array<std::string_view, 5> kAround = {"Primitive", "OnlyValid", "Combine", "Maximal", "MaxCoalesce"};
    if (!rule.Has("rule") || !rule.Has("of")) return false;
    return std::any_of(kAround.begin(), kAround.end(), [&](std::string_view name) { return rule.value()["rule"] == name; });
  };
  std::vector<JsonReader> parts = {reader};
  while (parts.size() == 1 && is_around(parts[0])) {
    is_wrapped = is_wrapped || parts[0].value()["rule"] == "Primitive";
    parts = COLLAGE_TRY(parts[0].At("of")).ItemsOrSelf();
  }
  Rule rule;
  if (compiler.empty()) {
    rule = std::make_shared<FusionPass>();
  } else {
    std::vector<Rule> rules;
    for (const JsonReader& part : parts) rules.push_back(COLLAGE_TRY(RuleFrom(part, compiler)));
    rule = MaximalRule(rules.size() == 1 ? rules[0] : UnionRule(std::move(rules)));
  }
  // Wrapped as the tree wraps its own, so that what both find is one candidate.
  return is_wrapped ? PrimitiveRule(compiler, std::move(rule)) : rule;
}

Rule DefaultNativeRule() {
  return PrimitiveRule(
      "", OnlyValidRule({.max_exits = 1}, CombineRule(NativeCombiners(), {.max_operators = kMostNativeOperators}, OpCallByKindRule())));
}

Rule NativeFusionRule() { return PrimitiveRule("", std::make_shared<FusionPass>()); }

Result<SubGraphConfig> ConfigFrom(const JsonReader& reader) {
  if (reader.IsNull()) return SubGraphConfig{};
  COLLAGE_TRY_STATUS(reader.OnlyFields({"max_exits", "max_depth", "allow_taps"}));
  SubGraphConfig config;
  config.max_exits = COLLAGE_TRY(reader.CountOr("max_exits", 0));
  config.max_depth = COLLAGE_TRY(reader.CountOr("max_depth", 0));
  config.allow_taps = COLLAGE_TRY(reader.BoolOr("allow_taps", false));
  return config;
}

Result<SubGraphConfig> OptionalConfig(const JsonReader& object) {
  if (!object.Has("config")) return SubGraphConfig{};
  return ConfigFrom(COLLAGE_TRY(object.At("config")));
}

Result<StatedRules> StatedRulesFrom(const JsonReader& reader) {
  StatedRules rules;
  for (const auto& [name, tree] : COLLAGE_TRY(reader.Fields())) {
    COLLAGE_TRY(RuleFrom(tree, {}));
    // What can be read for one compiler can be for any.
    rules[name] = [json = std::make_shared<const Json>(tree.value()), place = tree.place()](const std::string& compiler) {
      return RuleFrom(JsonReader(*json, place), compiler).value();
    };
  }
  return rules;
}

}  // namespace collage
