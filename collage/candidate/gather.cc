#include "collage/candidate/gather.h"

#include <sstream>

#include "collage/candidate/library_calls.h"
#include "collage/pattern/check.h"

namespace collage {
namespace {

void Append(const std::vector<PatternRule>& more, std::vector<PatternRule>& rules) { rules.insert(rules.end(), more.begin(), more.end()); }

/// What kernels for a native target may call libraries for.
Result<std::vector<PatternRule>> CallableFor(const Target& target, const std::vector<Target>& targets, const RulesOfCompiler& rules_of,
                                             const GatherOptions& options) {
  std::vector<PatternRule> callable;
  const std::string named = target.Attribute("libs");
  if (named == "none") return callable;
  if (named.empty()) {
    for (const Target& other : targets) {
      const BackendRules* rules = rules_of(other.CompilerName());
      if (rules && other.CompilerName() != target.CompilerName()) Append(rules->callable, callable);
    }
    return callable;
  }
  std::istringstream names(named);
  for (std::string name; std::getline(names, name, ',');) {
    const BackendRules* rules = rules_of(name);
    if (!rules && options.library_rules) rules = options.library_rules(name);
    const std::string where = "target '" + target.ToString() + "': ";
    if (!rules) return Fail(where + "there is no library '" + name + "'");
    if (rules->callable.empty()) return Fail(where + "native kernels cannot call library '" + name + "'");
    Append(rules->callable, callable);
  }
  return callable;
}

std::string NamesOf(const StatedRules& rules) {
  std::string names;
  for (const auto& [name, rule] : rules) names += (names.empty() ? "'" : ", '") + name + "'";
  return names.empty() ? "none is stated" : "stated are " + names;
}

Result<SpecPointer> SpecOf(const Target& target, const std::vector<Target>& targets, const RulesOfCompiler& rules_of,
                           const GatherOptions& options) {
  PartitionSpec spec;
  spec.name = target.CompilerName();
  spec.targets = {target};
  const auto fail = [&](const std::string& what) { return Fail("target '" + target.ToString() + "': " + what); };
  const std::string named = target.Attribute("partition_rule");
  const BackendRules* rules = rules_of(spec.name);
  if (!rules) return fail("there is no compiler '" + spec.name + "'");
  if (const Status checked = CheckPatterns(rules->patterns); !checked) return fail(checked.error().message);
  if (!named.empty()) {
    const auto at = options.stated_rules.find(named);
    if (at == options.stated_rules.end()) return fail("there is no partition rule '" + named + "'; " + NamesOf(options.stated_rules));
    spec.rule = at->second(spec.name == "native" ? "" : spec.name);
  } else if (rules->style == BackendRules::Style::kNative) {
    spec.rule = RuleForNative(spec.name, *rules, options, COLLAGE_TRY(CallableFor(target, targets, rules_of, options)));
  } else if (!rules->patterns.empty()) {
    spec.rule = RuleForPatterns(spec.name, *rules);
  } else if (rules->supports) {
    spec.rule = RuleForRegions(spec.name, *rules, options.region_cuts);
  } else {
    return fail("compiler '" + spec.name + "' states neither patterns nor a predicate");
  }
  return std::make_shared<const PartitionSpec>(std::move(spec));
}

}  // namespace

Rule RuleForPatterns(const std::string& compiler, const BackendRules& rules) {
  std::vector<Rule> labelled;
  for (const PatternRule& rule : rules.patterns) {
    labelled.push_back(LabelledMatchesRule(rule));
  }
  return PrimitiveRule(compiler, OnlyValidRule({.max_exits = 1}, ReleaseConstantsRule(UnionRule(std::move(labelled)))));
}

Rule RuleForRegions(const std::string& compiler, const BackendRules& rules, const RegionCutLimits& limits) {
  const Rule all = rules.whole_regions_only ? RegionCutsRule(rules.supports, {.cut_points = 0, .fine_cut_points = 0})
                                            : UnionRule({RegionCutsRule(rules.supports, limits), FusionGroupsRule(rules.supports)});
  return PrimitiveRule(compiler, OnlyValidRule({.allow_taps = true}, all));
}

Rule RuleForNative(const std::string& compiler, const BackendRules& rules, const GatherOptions& options,
                   std::vector<PatternRule> callable) {
  std::vector<Rule> all = {CombineRule(NativeCombiners(), options.native_limits, OpCallByKindRule(rules.supports)),
                           FusionGroupsRule(rules.supports, options.native_max_operators)};
  // A code generator may have templates for whole patterns, a decomposed normalisation say, that fusion by kind does not join.
  for (const PatternRule& rule : rules.patterns) {
    all.push_back(ReleaseConstantsRule(LabelledMatchesRule(rule)));
  }
  if (rules.may_follow_call && rules.supports_calls && !callable.empty())
    all.push_back(LibraryCallsRule({std::move(callable), rules.may_follow_call, rules.supports_calls, options.least_bytes_of_calls}));
  return PrimitiveRule(compiler == "native" ? "" : compiler, OnlyValidRule({.max_exits = 1}, UnionRule(std::move(all))));
}

SpecPointer HostSpec() {
  return std::make_shared<const PartitionSpec>(PartitionSpec{"host", {Target{}}, UnionRule({NoCallRule(), ViewRule()}), true});
}

Result<std::vector<SpecPointer>> GatherPartitionSpecs(const std::vector<Target>& targets, const RulesOfCompiler& rules_of,
                                                      const GatherOptions& options) {
  std::vector<SpecPointer> specs;
  bool has_native = false;
  for (const Target& target : targets) {
    for (const SpecPointer& spec : specs) {
      if (spec->targets[0] == target) return Fail("target '" + target.ToString() + "' is given twice");
    }
    const BackendRules* rules = rules_of(target.CompilerName());
    if (rules && rules->runs_side_by_side) continue;
    specs.push_back(COLLAGE_TRY(SpecOf(target, targets, rules_of, options)));
    has_native = has_native || specs.back()->name == "native";
  }
  if (!has_native && rules_of("native")) specs.push_back(COLLAGE_TRY(SpecOf(Target{}, targets, rules_of, options)));
  specs.push_back(HostSpec());
  return specs;
}

SpecPointer FallbackSpec(const std::string& compiler) {
  return std::make_shared<const PartitionSpec>(PartitionSpec{
      compiler, {Target{DeviceKind::kCpu, {{"compiler", compiler}}}}, PrimitiveRule(compiler, OpPredicateRule(compiler, {}))});
}

}  // namespace collage
