// Whatever a query names as a sub-graph is answered: nothing aborts, and what is valid can be extracted as a closed, well-typed function.

#include <gtest/gtest.h>

#include <random>

#include "collage/dataflow/extraction.h"
#include "collage/ir/print.h"
#include "collage/ir/verify.h"
#include "collage/query/program.h"
#include "collage/query/query.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

/// Programs with every form of expression.
const std::vector<std::string>& Programs() {
  static const std::vector<std::string> programs = {
      R"(fn (%x: Tensor[(4), float32]) { %0 = split(%x, indices_or_sections=2); %1 = %0.0; %2 = %0.1; %3 = nn.relu(%1); %4 = (%3, %2);
         %5 = concatenate(%4); %6 = (%5,); %7 = (); %8 = (%6, %7); %9 = %8.0; %10 = %9.0; %11 = add(%10, %x); %11 })",
      R"(fn (%c: bool, %x: Tensor[(2), float32]) { %0 = nn.relu(%x); %1 = if (%c) { %2 = tanh(%0); %3 = exp(%2); %3 } else { %4 = exp(%0); %4 };
         %5 = tanh(%1); %6 = add(%5, %0); %6 })",
      R"(fn (%x: Tensor[(2), float32]) { %0 = nn.relu(%x); %1 = (let %v = %0; %2 = add(%v, %v); let %w = exp(%2); %3 = multiply(%w, %v); %3);
         %4 = tanh(%1); %5 = add(%4, meta[relay.Constant][0] /*Tensor[(2), float32]*/); %6 = multiply(%5, 2f); %6 })",
      R"(fn (%x: Tensor[(2), float32]) { %0 = nn.relu(%x);
         %1 = fn (%y: Tensor[(2), float32]) -> Tensor[(2), float32] { %2 = add(%y, %0); %3 = fn (%z: Tensor[(2), float32]) -> Tensor[(2), float32] { exp(%z) };
         %4 = %3(%2); %4 }; %5 = %1(%x); %6 = %1(%5); %7 = add(%6, %0); %7 })",
      R"(fn (%c: bool, %x: Tensor[(2), float32]) { let %f = fn (%y: Tensor[(2), float32]) -> Tensor[(2), float32] { %0 = exp(%y);
         %1 = if (%c) { %2 = %f(%0); %2 } else { %0 }; %1 }; %3 = %f(%x); %4 = tanh(%3); %4 })",
      R"(def @f(%y: Tensor[(2), float32]) -> Tensor[(2), float32] { %0 = tanh(%y); %1 = exp(%0); %1 }
         def @main(%c: bool, %t: (Tensor[(2), float32], Tensor[(2), float32])) -> Tensor[(2), float32] { %0 = %t.0; %1 = @f(%0); %2 = %t.1; %3 = add(%1, %2);
         %4 = if (%c) { %5 = (%3, %2); %6 = @main(%c, %5); %6 } else { %7 = exp(%3); %7 }; %4 })"};
  return programs;
}

/// The module in which an extracted function stands, so that the names of functions that it calls are known.
IRModule Around(const QueryProgram& program, const Expr& function) {
  IRModule module = program.module();
  module.Set("main", function);
  return module;
}

TEST(QueryFuzz, ValidSubGraphsCanBeExtracted) {
  size_t extracted_count = 0;
  for (const std::string& text : Programs()) {
    const Json entry = {{"program", text}};
    const Result<QueryProgram> program = QueryProgram::Read(JsonReader(entry, "case"));
    ASSERT_TRUE(program) << program.error().message;
    for (const auto& function : program->functions()) {
      const DataflowGraph& graph = function->graph();
      std::mt19937_64 random(7);
      for (size_t round = 0; round < Rounds(4000); ++round) {
        IndexSet inside;
        const size_t size = 1 + random() % 5;
        for (size_t i = 0; i < size; ++i) inside.Add(random() % graph.size());
        const SubGraph sub_graph(graph, inside);
        if (!sub_graph.IsValid(graph, {.allow_taps = true})) continue;
        const Result<ExtractedFunction> extracted =
            ExtractFunction(graph, sub_graph.WithAttributes(graph, {{"Primitive", AttributeValue(1)}}));
        ASSERT_TRUE(extracted) << extracted.error().message << " " << function->NamesOf(inside).dump() << "\n" << text;
        ++extracted_count;
        // A call of @main has another type now.
        bool calls_main = false;
        for (PostDfsIndex node = 0; node < graph.size(); ++node) {
          const GlobalVar* global = graph[node].expr->As<GlobalVar>();
          calls_main = calls_main || (global && global->name == "main");
        }
        if (calls_main) continue;
        const Status verified = Verify(Around(*program, extracted->function));
        EXPECT_TRUE(verified) << verified.error().message << " " << function->NamesOf(inside).dump() << "\n"
                              << text << "\n"
                              << Print(extracted->function);
      }
    }
  }
  EXPECT_GT(extracted_count, Rounds(1000));
}

/// Cases with single values replaced or removed: every one is answered or is an error of its own.
TEST(QueryFuzz, BrokenCasesAreErrorsOfTheirOwn) {
  const std::vector<std::string> queries = {
      R"({"subgraph": {"inside": ["%0"], "nested": [{"inside": ["%0"], "attributes": {"Composite": "a"}}], "attributes": {"Primitive": 1}}, "config": {"max_exits": 1}})",
      R"({"pattern": {"optional": {"inner": {"call": "exp", "args": ["*"], "as": "e"}, "outer": {"call": "tanh", "args": ["<>"]}}}, "roots": "all"})",
      R"({"pattern": {"dominator": {"parent": {"op": "exp"}, "path": "*", "child": {"same": "e"}}, "as": "e"}, "root": "%0"})",
      R"({"rule": {"rule": "Primitive", "of": {"rule": "Combine", "combiners": [{"any": true}, {"by_kind": ["injective", "opaque"]}], "max_depth": 2,
          "of": {"rule": "OpPredicate", "supports": [{"operator": "tanh", "argument_dtype": "float32"}]}}}, "spec": {"name": "a", "target": "cpu -compiler=a"}, "then": "rewrite"})",
      R"({"targets": ["a", "native"], "rules": {"a": {"rule": "OpCallByKind"}}, "prices": {"per_operator": {"a": 1, "native": 2}, "factor": 0.5}, "transition_penalty": 0.5, "maximal_regions": true})",
      R"({"passes": ["merge-composite", {"annotate": {"supports": {"b": [{"operator": "exp"}]}}}, "deconflict", "merge", {"pass": "partition", "bind_constants": false}, "fuse", "inline"],
          "patterns": [{"label": "a.tanh", "pattern": {"call": "tanh", "args": ["*"]}, "check": {"path": [0], "batch_is": 2}}], "priority": ["b", "native"], "level": 1, "max_operators": 3})",
      R"({"assignment": {"a": ["%0", "%6"], "b": ["%2", "%3"], "native": ["%4"]}, "passes": ["merge", "partition"]})",
      R"({"regions": [{"backend": "a", "members": ["%2", "%3"], "composites": [{"label": "a.x", "members": ["%3"]}]}], "bind_constants": true})",
      R"({"price_in_turn": [{"inside": ["%0"]}], "prices": {"per_operator": {"native": 2}}, "known_price": 2})"};
  const std::vector<Json> values = {nullptr, 3, -1, 1e300, "x", "", Json::array(), Json::object(), true, Json::array({Json::array({1})})};
  std::mt19937_64 random(3);
  for (const std::string& text : queries) {
    const Json whole = {{"name", "n"}, {"program", Programs()[1]}, {"query", Json::parse(text)}};
    const Json flat = whole.flatten();
    Json cases = Json::array();
    for (const auto& [pointer, value] : flat.items()) {
      if (pointer == "/name") continue;
      for (const Json& other : values) {
        Json broken = whole;
        Json::json_pointer at(pointer);
        // The value itself, or something around it.
        for (size_t up = random() % 3; up > 0 && !at.parent_pointer().empty(); --up) at = at.parent_pointer();
        broken[at] = other;
        cases.push_back(std::move(broken));
      }
    }
    const Result<Json> answers = AnswerQueries(cases.dump());
    ASSERT_TRUE(answers);
    for (const Json& answer : *answers) EXPECT_NE(answer.contains("answer"), answer.contains("error")) << answer.dump();
  }
}

TEST(QueryFuzz, NestingIsBounded) {
  const std::string open(100'000, '[');
  EXPECT_FALSE(AnswerQueries(open + std::string(100'000, ']')));
  std::string pattern = R"("*")";
  for (int i = 0; i < 100; ++i) pattern = R"({"call": "exp", "args": [)" + pattern + "]}";
  EXPECT_TRUE(AnswerQueries(R"({"program": "fn (%x: float32) { exp(%x) }", "query": {"pattern": )" + pattern + R"(, "roots": "all"}})"));
}

}  // namespace
}  // namespace collage
