// Rule trees for -partition_rule=NAME, as values (collage/candidate/rules.h).

#include "python/placement/rules.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <optional>

#include "collage/candidate/rules.h"
#include "collage/pattern/check.h"
#include "python/placement/values.h"

namespace collage_python {

using namespace collage;

std::function<Verdict(const Match&)> CheckOf(nb::object check) {
  if (check.is_none()) return {};
  return [kept = Kept(std::move(check))](const Match& match) {
    const nb::gil_scoped_acquire acquire;
    return VerdictFrom(kept.get()(match));
  };
}

namespace {

CallPredicate SupportsOf(nb::object supports) {
  if (supports.is_none()) return {};
  return [kept = Kept(std::move(supports))](const Expr& call) {
    const nb::gil_scoped_acquire acquire;
    return VerdictFrom(kept.get()(ExprView{call}));
  };
}

/// A rule without rules inside.
RuleTree Leaf(Rule rule) {
  return {[rule = std::move(rule)](const std::string&) { return rule; }};
}

std::vector<Rule> Made(const std::vector<RuleTree>& trees, const std::string& compiler) {
  std::vector<Rule> rules;
  for (const RuleTree& tree : trees) rules.push_back(tree.make(compiler));
  return rules;
}

OpKind KindNamed(const std::string& name) {
  std::string all;
  for (int kind = 0; kind <= static_cast<int>(OpKind::kOpaque); ++kind) {
    const std::string_view known = Name(static_cast<OpKind>(kind));
    if (known == name) return static_cast<OpKind>(kind);
    all += (all.empty() ? "" : ", ") + std::string(known);
  }
  Raise("ArgumentError", "there is no fusion kind '" + name + "', expected one of " + all);
}

Combiner CombinerFrom(nb::handle value) {
  if (nb::isinstance<nb::tuple>(value) && nb::len(value) == 2)
    return Combiner::ByKind(KindNamed(nb::cast<std::string>(value[0])), KindNamed(nb::cast<std::string>(value[1])));
  const std::array<std::pair<const char*, Combiner>, 5> kNamed = {{{"any", Combiner::Any()},
                                                                   {"tuple_argument", Combiner::TupleArgument()},
                                                                   {"tuple_projection", Combiner::TupleProjection()},
                                                                   {"constant", Combiner::Constant()},
                                                                   {"siblings", Combiner::Siblings()}}};
  std::string all;
  for (const auto& [name, combiner] : kNamed) {
    if (nb::isinstance<nb::str>(value) && nb::cast<std::string>(value) == name) return combiner;
    all += std::string("'") + name + "', ";
  }
  Raise("ArgumentError",
        std::string("a combiner is ") + all + "or a pair of fusion kinds (upstream, downstream), not " + nb::repr(value).c_str());
}

RuleTree DFPattern(const Pattern& pattern, nb::object check) {
  if (const Status status = CheckPattern(pattern); !status) Raise("ArgumentError", status.error().message);
  return Leaf(DFPatternRule("DFPattern", pattern, CheckOf(std::move(check))));
}

RuleTree Combine(const RuleTree& of, nb::handle combiners, size_t max_depth, size_t max_operators, size_t max_exits) {
  std::vector<Combiner> joins;
  for (const nb::handle combiner : combiners) joins.push_back(CombinerFrom(combiner));
  const CombineLimits limits{.max_depth = max_depth, .max_operators = max_operators, .max_exits = max_exits};
  return {[=](const std::string& compiler) { return CombineRule(joins, limits, of.make(compiler)); }};
}

}  // namespace

void BindRules(nb::module_& module) {
  nb::class_<RuleTree>(module, "Rule", "How to find candidates. Built by the functions of collage.rules.");
  module.def("DFPattern", &DFPattern, nb::arg("pattern"), nb::arg("check").none() = nb::none(),
             nb::sig("def DFPattern(pattern: Pattern, check: collections.abc.Callable[[Match], bool | str | None] | None = None) -> Rule"),
             "Every match of a pattern that `check` accepts: it is given the match, and answers True, False or why not");
  module.def(
      "OpPredicate",
      [](nb::object supports, bool pull_constants) {
        return Leaf(OpPredicateRule("OpPredicate", SupportsOf(std::move(supports)), pull_constants));
      },
      nb::arg("supports"), nb::arg("pull_constants") = false,
      nb::sig("def OpPredicate(supports: collections.abc.Callable[[Expr], bool | str | None], pull_constants: bool = False) -> Rule"),
      "Every call of an operator that `supports` accepts: it is given the call, and answers True, False or why not");
  module.def(
      "OpCallByKind", [](nb::object supports) { return Leaf(OpCallByKindRule(SupportsOf(std::move(supports)))); },
      nb::arg("supports").none() = nb::none(),
      nb::sig("def OpCallByKind(supports: collections.abc.Callable[[Expr], bool | str | None] | None = None) -> Rule"),
      "Every call of an operator that fuses");
  module.def(
      "Host", [] { return Leaf(HostRule()); }, "Every expression that may stay behind for the executor");
  module.def(
      "Composite",
      [](const std::string& label, const RuleTree& of) {
        return RuleTree{[=](const std::string& compiler) { return CompositeRule(label, of.make(compiler)); }};
      },
      nb::arg("label"), nb::arg("of"), "Each becomes one operator of a backend: 'backend.kernel'");
  module.def(
      "Primitive",
      [](const RuleTree& of) { return RuleTree{[=](const std::string& compiler) { return PrimitiveRule(compiler, of.make(compiler)); }}; },
      nb::arg("of"), "Each becomes a partition of the target's compiler");
  module.def(
      "Union",
      [](const nb::args& rules) {
        std::vector<RuleTree> trees;
        for (const nb::handle rule : rules) trees.push_back(nb::cast<RuleTree>(rule));
        return RuleTree{[=](const std::string& compiler) { return UnionRule(Made(trees, compiler)); }};
      },
      nb::sig("def Union(*rules: Rule) -> Rule"));
  module.def(
      "Combine", &Combine, nb::arg("of"), nb::arg("combiners"), nb::arg("max_depth") = 0, nb::arg("max_operators") = 0,
      nb::arg("max_exits") = 0,
      nb::sig("def Combine(of: Rule, combiners: collections.abc.Sequence[str | tuple[str, str]], max_depth: int = 0, max_operators: "
              "int = 0, max_exits: int = 0) -> Rule"),
      "All ways of joining, each by a combiner: 'any', 'tuple_argument', 'tuple_projection', 'constant', 'siblings', or fusion kinds of "
      "what stands upstream and downstream. Zero is no limit");
  module.def(
      "OnlyValid",
      [](const RuleTree& of, size_t max_exits, size_t max_depth, bool allow_taps) {
        const SubGraphConfig config{.max_exits = max_exits, .max_depth = max_depth, .allow_taps = allow_taps};
        return RuleTree{[=](const std::string& compiler) { return OnlyValidRule(config, of.make(compiler)); }};
      },
      nb::arg("of"), nb::arg("max_exits") = 0, nb::arg("max_depth") = 0, nb::arg("allow_taps") = false,
      "Those that can be functions; zero is no limit");
  module.def(
      "Maximal", [](const RuleTree& of) { return RuleTree{[=](const std::string& compiler) { return MaximalRule(of.make(compiler)); }}; },
      nb::arg("of"), "The largest regions that joining makes");
  module.def(
      "MaxCoalesce",
      [](const RuleTree& of) { return RuleTree{[=](const std::string& compiler) { return MaxCoalesceRule(of.make(compiler)); }}; },
      nb::arg("of"), "The same, of the sub-graphs themselves only");
}

}  // namespace collage_python
