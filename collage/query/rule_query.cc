#include "collage/query/queries.h"
#include "collage/query/rule_json.h"
#include "collage/query/sub_graph_json.h"
#include "collage/query/target_json.h"

namespace collage {
namespace {

/// The compiler that a spec is for; empty for a native one. Without a target its name says it.
Result<std::string> CompilerOfSpec(const JsonReader& query) {
  if (!query.Has("spec") || query.value()["spec"].is_null()) return std::string();
  const JsonReader spec = COLLAGE_TRY(query.At("spec"));
  const QueryTarget target = COLLAGE_TRY(TargetFrom(spec));
  return target.IsNative() ? std::string() : target.compiler;
}

/// What a candidate becomes when it is applied. For an external target it becomes a function of that compiler, whether or not the
/// rule wraps it; a native one is left in place but for what wraps it or parts of it.
std::vector<NestedSubGraph> PartitionsOf(const NamedCandidate& candidate, const std::string& compiler) {
  const SubGraph& sub_graph = candidate.sub_graph;
  if (compiler.empty() || BackendOf(sub_graph) != "native") return {sub_graph.nested().begin(), sub_graph.nested().end()};
  const Attributes attributes = {{"Primitive", AttributeValue(1)}, {"Compiler", compiler}};
  return {NestedSubGraph{sub_graph, attributes}};
}

/// The functions that rewriting makes of the candidates of one function.
Status Rewrite(const NamedFunction& function, const std::vector<NamedCandidate>& candidates, const std::string& compiler, Json& functions,
               Json& left_outside) {
  std::vector<NestedSubGraph> partitions;
  IndexSet covered;
  for (const NamedCandidate& candidate : candidates) {
    if (candidate.function != &function) continue;
    for (const NestedSubGraph& nested : PartitionsOf(candidate, compiler)) {
      if (covered.Intersects(nested.sub_graph.inside())) {
        return Fail("two candidates share " + function.NamesOf(covered & nested.sub_graph.inside()).dump() +
                    ", so they cannot all be applied; expected disjoint ones");
      }
      covered |= nested.sub_graph.inside();
      partitions.push_back(nested);
    }
  }
  // The rewriting itself says whether the partitions fit together.
  COLLAGE_TRY(RewriteFunction(function.graph(), partitions));
  for (const NestedSubGraph& partition : partitions) {
    const SubGraph wrapped = partition.sub_graph.WithAttributes(function.graph(), partition.attributes);
    const ExtractedFunction extracted = COLLAGE_TRY(ExtractFunction(function.graph(), wrapped));
    functions.push_back(function.Tagged(FunctionToJson(function, wrapped, extracted)));
  }
  for (Json& name : function.CallsOutside(covered)) left_outside.push_back(std::move(name));
  return {};
}

}  // namespace

Result<Json> AnswerRule(const QueryProgram& program, const JsonReader& query) {
  const std::string compiler = COLLAGE_TRY(CompilerOfSpec(query));
  const JsonReader field = COLLAGE_TRY(query.At("rule"));
  if (!field.IsString()) COLLAGE_TRY_STATUS(query.OnlyFields({"rule", "spec", "then", "function"}));
  // The tree stands below "rule"; a query may also be the tree itself.
  Json tree = field.IsString() ? query.value() : field.value();
  if (field.IsString()) {
    for (const char* other : {"spec", "then", "function"}) tree.erase(other);
  }
  const Rule rule = COLLAGE_TRY(RuleFrom(JsonReader(tree, field.place()), compiler));
  std::vector<NamedCandidate> candidates;
  const std::vector<const NamedFunction*> functions = COLLAGE_TRY(program.FunctionsOf(query));
  for (const NamedFunction* function : functions) {
    for (SubGraph& sub_graph : rule->AllSubGraphs(function->graph(), nullptr)) candidates.push_back({function, std::move(sub_graph)});
  }
  Json list = CandidatesToJson(candidates);
  Json answer = {{"count", list.size()}, {"candidates", std::move(list)}};
  if (!query.Has("then")) return answer;
  const JsonReader then = COLLAGE_TRY(query.At("then"));
  if (!then.IsText("rewrite")) return then.Expected("\"rewrite\"");
  Json rewritten = Json::array();
  Json left_outside = Json::array();
  for (const NamedFunction* function : functions) COLLAGE_TRY_STATUS(Rewrite(*function, candidates, compiler, rewritten, left_outside));
  answer["rewritten"] = {{"count", rewritten.size()}, {"functions", std::move(rewritten)}, {"left_outside", std::move(left_outside)}};
  return answer;
}

}  // namespace collage
