#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <random>

#include "collage/decide/priced_problem.h"
#include "collage/form/rules.h"
#include "collage/op/interpreter.h"
#include "collage/search/cover_graph.h"
#include "collage/support/hash.h"
#include "tests/driver/decided.h"
#include "tests/form/relus_of_one_tensor.h"

namespace collage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Every operator alone, and with a sigmoid behind it; in two layouts.
class Library : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "library"; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    for (const char* op : {"nn.relu", "sigmoid", "tanh", "add", "maximum", "subtract", "concatenate", "split", "broadcast_to"}) {
      rules.patterns.push_back({std::string("library.") + op, pattern::CallOf(op), {}});
      rules.patterns.push_back({std::string("library.sigmoid_") + op, pattern::CallOf("sigmoid", {pattern::CallOf(op)}), {}});
    }
    return rules;
  }
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device&) const override {
    std::vector<Variant> variants;
    const size_t results = FlattenTensors(function.body->type()).size();
    for (const char* from : {"abcd", "acdb"}) {
      for (const char* to : {"abcd", "acdb"}) {
        variants.push_back({std::string(from) + to, std::vector<Layout>(function.parameters.size(), Layout::Of(from)),
                            std::vector<Layout>(results, Layout::Of(to))});
      }
    }
    return variants;
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    return CompileReference(function, device, variant);
  }
};

/// Regions, of what is cut along none of its results.
class Compiler : public Library {
 public:
  [[nodiscard]] std::string_view Name() const override { return "compiler"; }
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    rules.style = BackendRules::Style::kPredicate;
    rules.supports = [](const Expr& call) { return CalledOp(call)->name == "split" ? Verdict::Reject("it is split") : Verdict::Accept(); };
    return rules;
  }
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device&) const override {
    const size_t results = FlattenTensors(function.body->type()).size();
    return {{"only", std::vector<Layout>(function.parameters.size()), std::vector<Layout>(results)}};
  }
};

/// The larger of a tensor and zero, from operators that no rule matches.
Result<Expr> Positive(const Expr& data) { return CallOp("maximum", {data, COLLAGE_TRY(CallOp("subtract", {data, data}))}); }

FormRule OfRelu() {
  return {"of_relu", pattern::CallOf("nn.relu", {pattern::Wildcard().As("data")}), [](const Match&) { return Verdict::Accept(); },
          [](const std::vector<Match>& matches) -> Result<std::vector<Expr>> {
            return std::vector<Expr>{COLLAGE_TRY(Positive(matches.front().Find("data")))};
          }};
}

/// relu(tanh(x)) the other way round.
FormRule OfPair() {
  FormRule rule = OfRelu();
  rule.name = "of_pair";
  rule.pattern = pattern::CallOf("nn.relu", {pattern::CallOf("tanh", {pattern::Wildcard().As("data")})});
  rule.replacement = [](const std::vector<Match>& matches) -> Result<std::vector<Expr>> {
    return std::vector<Expr>{COLLAGE_TRY(CallOp("tanh", {COLLAGE_TRY(Positive(matches.front().Find("data")))}))};
  };
  return rule;
}

/// relus of one tensor as parts of one relu.
FormRule Siblings() {
  FormRule rule = OfRelu();
  rule.name = "siblings";
  rule.joins = [](const Match&, const Match&) { return true; };
  rule.replacement = AsPartsOfOneRelu;
  return rule;
}

/// relus of one tensor, each but the first of what the one before it gives: roots that need each other, in the order of their gates.
FormRule Successive() {
  FormRule rule = OfRelu();
  rule.name = "successive";
  rule.joins = [](const Match&, const Match&) { return true; };
  rule.replacement = [](const std::vector<Match>& matches) -> Result<std::vector<Expr>> {
    std::vector<Expr> results;
    for (size_t i = 0; i < matches.size(); ++i)
      results.push_back(COLLAGE_TRY(Positive(results.empty() ? matches.front().Find("data") : results.back())));
    return results;
  };
  return rule;
}

/// A few operators, everything used, of the input or of what it is spread to.
std::string RandomProgram(std::mt19937& random, bool is_spread = false) {
  const auto pick = [&](size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random); };
  std::string text = is_spread ? "fn (%x: Tensor[(1, 1, 2, 2), float32]) { %s = broadcast_to(%x, shape=[1, 2, 2, 2]); "
                               : "fn (%x: Tensor[(1, 2, 2, 2), float32]) { ";
  const size_t operators = 2 + pick(4);
  std::vector<std::string> unused;
  const auto name = [&](size_t i) { return i == 0 ? std::string(is_spread ? "%s" : "%x") : fmt::format("%{}", i - 1); };
  for (size_t i = 0; i < operators; ++i) {
    const std::string argument = name(pick(i + 1));
    std::erase(unused, argument);
    const std::array<const char*, 5> all = {"nn.relu", "nn.relu", "tanh", "tanh", "sigmoid"};
    text += fmt::format("{} = {}({}); ", name(i + 1), all[pick(all.size())], argument);
    unused.push_back(name(i + 1));
  }
  size_t next = operators;
  while (unused.size() > 1) {
    text += fmt::format("%{} = add({}, {}); ", next, unused[0], unused[1]);
    unused.erase(unused.begin(), unused.begin() + 2);
    unused.push_back(fmt::format("%{}", next++));
  }
  return text + unused[0] + " }";
}

class FormsTest : public testing::Test {
 protected:
  PlacementPointer Place(const Expr& function, const std::vector<FormRule>& rules, const UserConstraints& constraints = {}) {
    return MakePlacement(function, {TargetOf(library_)}, pricer_, {}, constraints, {.forms = rules}).value();
  }

  /// Every kernel has a price that hangs on what it computes and how, not where.
  static Result<SearchResult> Optimum(const Placement& placement, uint64_t seed) {
    std::vector<Cost> costs;
    for (const PlacedKernel& kernel : placement.kernels) {
      const uint64_t hash = HashCombine(HashCombine(kernel.key.function_hash, HashBytes(kernel.key.variant)), seed);
      costs.push_back(Cost::Microseconds(static_cast<double>(1 + hash % 1000)));
    }
    return SearchAt(placement.arms, costs);
  }

  /// As the function does, bit for bit.
  static bool ComputesTheSame(const Placement& placement, const SearchResult& best, uint64_t seed) {
    Tensor input(*placement.function()->As<Function>()->parameters.front()->type().AsTensor());
    FillRandom(input, seed);
    const IRModule module = Apply(placement, MakePlan(placement, "searched", best)).value();
    return BitwiseEqual(InterpretMain(module, {input}).value().front(), InterpretFunction(placement.function(), {input}).value().front());
  }

  Library library_;
  MeasurementCache cache_ = MeasurementCache::Open({}).value();
  Pricer pricer_{{}, cache_, {}};
};

/// All sets of forms that do not overlap.
std::vector<std::vector<size_t>> SetsOfForms(const FormedGraph& formed) {
  std::vector<std::vector<size_t>> sets;
  for (size_t bits = 0; bits < size_t{1} << formed.forms.size(); ++bits) {
    std::vector<size_t> set;
    IndexSet covered;
    bool overlaps = false;
    for (size_t form = 0; form < formed.forms.size(); ++form) {
      if ((bits >> form & 1) == 0) continue;
      overlaps = overlaps || covered.Intersects(formed.forms[form].covered);
      covered |= formed.forms[form].covered;
      set.push_back(form);
    }
    if (!overlaps) sets.push_back(std::move(set));
  }
  return sets;
}

TEST_F(FormsTest, TheOptimumIsThatOfTheBestSetOfForms) {
  std::mt19937 random(7);
  std::map<std::string, size_t> taken;
  std::map<std::string, size_t> offered;
  for (uint64_t seed = 0; seed < 250; ++seed) {
    const std::string text = RandomProgram(random, seed % 2 == 0);
    const Expr function = Parsed(text);
    const PlacementPointer placement = Place(function, {OfRelu(), OfPair(), seed % 4 < 2 ? Siblings() : Successive(), RecomputationForm()});
    if (placement->formed.forms.size() > 6) continue;
    for (const Form& form : placement->formed.forms) ++offered[form.rule];
    Cost least = Cost::Invalid();
    for (const std::vector<size_t>& set : SetsOfForms(placement->formed)) {
      const Expr formed = ApplyForms(placement->formed, set).value().function;
      least = std::min(least, Optimum(*Place(formed, {}), seed).value().cost);
    }
    const SearchResult best = Optimum(*placement, seed).value();
    ASSERT_EQ(best.cost, least) << text;
    for (const size_t form : FormsOf(*placement, best.choices)) ++taken[placement->formed.forms[form].rule];
    ASSERT_TRUE(ComputesTheSame(*placement, best, seed)) << text;
  }
  EXPECT_GT(taken["of_relu"] + taken["of_pair"] + taken["siblings"], 4u) << "or the test says nothing of them";
  EXPECT_GT(offered["successive"], 20u) << "or the test says nothing of roots that need each other";
  EXPECT_GT(taken["recomputation"], 4u) << "or the test says nothing of forms that have several roots";
}

TEST_F(FormsTest, ARegionDoesNotHoldWhatIsProjectedFromAFormOutsideOfIt) {
  std::mt19937 random(8);
  const Compiler compiler;
  size_t with_forms = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::string text = RandomProgram(random);
    const Expr function = Parsed(text);
    const PlacementPointer placement =
        MakePlacement(function, {TargetOf(compiler), TargetOf(library_)}, pricer_, {}, {}, {.forms = {Siblings(), OfPair(), OfRelu()}})
            .value();
    const DataflowGraph& graph = *placement->formed.graph;
    for (const PricedCandidate& candidate : placement->candidates) {
      const IndexSet& inside = candidate.candidate.sub_graph.inside();
      inside.ForEach([&](PostDfsIndex node) {
        const bool is_of_other = graph[node].Is<TupleGetItem>() && !inside.Contains(graph[node].inputs.front());
        EXPECT_FALSE(is_of_other && placement->formed.FormOf(graph[node].inputs.front()) != FormedGraph::kNoForm) << text;
      });
    }
    const SearchResult best = Optimum(*placement, seed).value();
    with_forms += FormsOf(*placement, best.choices).empty() ? 0 : 1;
    ASSERT_TRUE(ComputesTheSame(*placement, best, seed)) << text;
  }
  EXPECT_GT(with_forms, 20u) << "or the test says nothing of them";
}

/// As in a WaveNet: what a layer adds to the sum is of one tensor with what the next layer reads, and may be computed together.
TEST_F(FormsTest, LayersThatAllAddToOneSumAreNotOpenToItsEnd) {
  constexpr size_t kLayers = 14;
  std::string text = "fn (%x: Tensor[(1, 2, 2, 2), float32]) { %h0 = tanh(%x); %a0 = nn.relu(%h0); ";
  for (size_t layer = 1; layer < kLayers; ++layer) {
    text +=
        fmt::format("%n{0} = nn.relu(%h{1}); %h{0} = tanh(%n{0}); %s{0} = nn.relu(%h{0}); %a{0} = add(%a{1}, %s{0}); ", layer, layer - 1);
  }
  const PlacementPointer placement = Place(Parsed(fmt::format("{} %a{} }}", text, kLayers - 1)), {Siblings()});
  EXPECT_EQ(placement->formed.forms.size(), kLayers - 1);
  const std::optional<CoverGraph> covers = CoverGraph::Build(placement->arms.problem, size_t{1} << kLayers);
  ASSERT_TRUE(covers);
  EXPECT_LT(covers->size(), 20 * kLayers);
}

TEST_F(FormsTest, WhatTheUserForbidsIsNotOffered) {
  const Expr function = Parsed("fn (%x: Tensor[(1, 2, 2, 2), float32]) { %0 = tanh(%x); %1 = nn.relu(%0); sigmoid(%1) }");
  const auto forms = [&](const std::vector<std::string>& forbid) {
    return Place(function, {OfRelu(), OfPair()}, {{}, forbid})->formed.forms.size();
  };
  EXPECT_EQ(forms({}), 2u);
  EXPECT_EQ(forms({"forms"}), 0u);
  EXPECT_EQ(forms({"forms:tanh"}), 1u);
  EXPECT_EQ(forms({"forms:nn.relu"}), 0u);
  EXPECT_THAT(MakePlacement(function, {TargetOf(library_)}, pricer_, {}, {{}, {"forms:exp"}}).error().message,
              HasSubstr("--forbid forms:exp: the program has no node and calls no operator 'exp'"));
}

TEST_F(FormsTest, WhatIsComputedAgainRunsNowhereWhereTheUserForbidsIt) {
  const Expr function =
      Parsed("fn (%x: Tensor[(1, 1, 2, 2), float32]) { %0 = broadcast_to(%x, shape=[1, 2, 2, 2]); add(sigmoid(%0), nn.relu(%0)) }");
  const auto with_broadcasts_of_forms = [&](const std::vector<std::string>& forbid) {
    const PlacementPointer placement = Place(function, {RecomputationForm()}, {{}, forbid});
    EXPECT_EQ(placement->formed.forms.size(), 1u);
    size_t count = 0;
    for (size_t c = 0; c < placement->candidates.size(); ++c) {
      bool has_broadcast = false;
      placement->candidates[c].candidate.sub_graph.inside().ForEach(
          [&](PostDfsIndex node) { has_broadcast = has_broadcast || IsCallOf((*placement->formed.graph)[node].expr, "broadcast_to"); });
      count += placement->IsOfForm(c) && has_broadcast ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(with_broadcasts_of_forms({}), 3u) << "alone for each of two users, and in the sigmoid of one";
  EXPECT_EQ(with_broadcasts_of_forms({"library:broadcast_to"}), 0u);
}

TEST_F(FormsTest, WithoutMatchesNothingIsOfAForm) {
  const PlacementPointer placement = Place(Parsed("fn (%x: Tensor[(1, 2, 2, 2), float32]) { tanh(sigmoid(%x)) }"), {OfRelu()});
  EXPECT_EQ(placement->formed.graph, placement->graph);
  for (size_t c = 0; c < placement->candidates.size(); ++c) EXPECT_FALSE(placement->IsOfForm(c));
}

/// Transposed convolutions slowly, convolutions and what moves elements quickly.
class Convolutions : public Library {
 public:
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    for (const char* op : {"nn.conv2d", "nn.conv2d_transpose", "nn.depth_to_space", "strided_slice", "nn.relu"})
      rules.patterns.push_back({std::string("library.") + op, pattern::CallOf(op), {}});
    return rules;
  }
  [[nodiscard]] std::vector<Variant> Variants(const Function&, const Device&) const override { return {{"only", {Layout()}, {Layout()}}}; }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    const bool is_slow = IsCallOf(function.body, "nn.conv2d_transpose") ||
                         (function.body->As<Call>()->callee->As<Function>() &&
                          IsCallOf(function.body->As<Call>()->callee->As<Function>()->body, "nn.conv2d_transpose"));
    return CompileTimed(function, device, variant, [is_slow] { return is_slow ? 9e-3 : 1e-3; });
  }
};

class FormDecisionTest : public testing::Test {
 protected:
  static Expr Generator() {
    Tensor weight(TensorType{{2, 3, 4, 4}, DType::kFloat32});
    FillRandom(weight, 3);
    const Expr x = MakeVar("x", TensorType{{1, 2, 3, 3}, DType::kFloat32});
    const Origin origin(OriginPart{OriginPart::Kind::kOnnxNode, "deconv1", 0});
    const Expr call = MakeCall(Operators().Find("nn.conv2d_transpose"), {x, MakeConstant(weight)},
                               {{"strides", std::vector<int64_t>{2, 2}}, {"padding", std::vector<int64_t>{1, 1, 1, 1}}}, origin)
                          .value();
    return MakeFunction({x}, MakeCall(Operators().Find("nn.relu"), {call}).value()).value();
  }

  SimulatedClock clock_;
  Convolutions library_;
  MeasurementCache cache_ = MeasurementCache::Open({}).value();
};

TEST_F(FormDecisionTest, TheFasterFormIsTakenRacedAndReported) {
  Decided decided(Generator(), {&library_}, cache_);
  ASSERT_TRUE(decided.Decide());
  const std::vector<Plan> plans = decided.Plans().plans;
  const CompileReport report = decided.Report(plans.front());
  ASSERT_EQ(report.plan.size(), 4u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(report.plan[i].form, "transposed_convolution");
    EXPECT_THAT(report.plan[i].nodes, ElementsAre("deconv1"));
  }
  EXPECT_EQ(report.plan[3].form, "");
  EXPECT_THAT(report.operators, testing::SizeIs(4)) << "the one that is replaced is none of them";
  EXPECT_THAT(ExplanationText(report, ExplanationDetail::kPartitions), HasSubstr("deconv1 in the form transposed_convolution"));
  EXPECT_EQ(ReportFromJson(ToJson(report)).value().plan[0].form, "transposed_convolution");
  const RaceOutcome race = decided.Race(plans).value();
  EXPECT_EQ(race.winner, 0u);
}

TEST_F(FormDecisionTest, ASingleBackendRunsTheModelAsItIs) {
  Decided decided(Generator(), {&library_}, cache_);
  ASSERT_TRUE(decided.Decide());
  const std::vector<Plan> plans = decided.Plans().plans;
  EXPECT_EQ(MostPlansToRace(decided.placement(), decided.Prices(), {}).single_backends.size(), 1u);
  ASSERT_GE(plans.size(), 2u);
  EXPECT_TRUE(FormsOf(decided.placement(), plans[1].result.choices).empty());
}

}  // namespace
}  // namespace collage
