#include "bench/backends.h"

#include "collage/candidate/gather.h"

namespace collage {
namespace {

using namespace pattern;  // NOLINT(google-build-using-namespace)

BackendRules Library() {
  BackendRules rules;
  const Pattern convolution = CallOf("nn.conv2d", {Wildcard(), IsConstant()});
  const Pattern bias = CallOf("nn.bias_add", {convolution, IsConstant()});
  rules.patterns = {{"library.conv2d_bias_sum_relu", CallOf("nn.relu", {CallOf("add", {bias, Wildcard()})}), {}},
                    {"library.conv2d_bias_sum", CallOf("add", {bias, Wildcard()}), {}},
                    {"library.conv2d_bias_relu", CallOf("nn.relu", {bias}), {}},
                    {"library.conv2d_bias", bias, {}},
                    {"library.conv2d", convolution, {}},
                    {"library.pool", CallOf("nn.avg_pool2d", {Wildcard()}), {}},
                    {"library.add", CallOf("add", {Wildcard(), Wildcard()}), {}},
                    {"library.relu", CallOf("nn.relu", {Wildcard()}), {}}};
  return rules;
}

/// All regions up to a size, joined from single calls.
Rule SmallRegions() {
  const CombineLimits limits{.max_depth = 6, .max_operators = 6, .max_exits = 1, .max_per_last_node = 16};
  return PrimitiveRule("compiler", OnlyValidRule({.max_exits = 1}, CombineRule({Combiner::Any(), Combiner::TupleArgument()}, limits,
                                                                               OpPredicateRule("compiler", {}))));
}

}  // namespace

std::vector<SpecPointer> BenchSpecs() {
  const BackendRules library = Library();
  const BackendRules compiler{BackendRules::Style::kPredicate, {}, [](const Expr&) { return Verdict::Accept(); }};
  const BackendRules native{BackendRules::Style::kNative, {}, {}};
  const auto spec = [](const char* name, const char* target, Rule rule) {
    return std::make_shared<const PartitionSpec>(PartitionSpec{name, {Target::Parse(target).value()}, std::move(rule)});
  };
  return {spec("library", "cpu -compiler=library", RuleForPatterns("library", library)),
          spec("compiler", "cpu -compiler=compiler", UnionRule({SmallRegions(), RuleForRegions("compiler", compiler, {})})),
          spec("native", "cpu", RuleForNative("native", native, {})), HostSpec()};
}

}  // namespace collage
