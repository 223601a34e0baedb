#include "collage/candidate/library_calls.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "collage/dataflow/extraction.h"
#include "collage/pattern/fusion.h"

namespace collage {
namespace {

class LibraryCalls final : public PartitionRule {
 public:
  explicit LibraryCalls(LibraryCallOptions options) : options_(std::move(options)) {}

  void ForEach(const DataflowGraph& graph, std::vector<Refusal>* refusals, const Visitor& visit) const override {
    std::vector<SubGraph> found;
    std::unordered_map<IndexSet, size_t> position;  // by inside set
    std::unordered_set<IndexSet> callable;
    for (const PatternRule& rule : options_.callable) {
      ForEachMatch(graph, rule, [&](const PatternMatch& match) {
        IndexSet called = WithoutConstants(graph, match.inside);
        callable.insert(called);
        std::optional<SubGraph> sub_graph = FromMatch(graph, rule, match, std::move(called), refusals);
        if (!sub_graph) return;
        const auto [at, is_new] = position.try_emplace(sub_graph->inside(), found.size());
        if (is_new) {
          found.push_back(std::move(*sub_graph));
        } else if (CalledCount(found[at->second]) < CalledCount(*sub_graph)) {
          found[at->second] = std::move(*sub_graph);
        }
      });
    }
    for (SubGraph& sub_graph : found) {
      if (!callable.contains(sub_graph.inside())) visit(std::move(sub_graph));
    }
  }

 private:
  static IndexSet WithoutConstants(const DataflowGraph& graph, const IndexSet& inside) {
    IndexSet left;
    inside.ForEach([&](PostDfsIndex node) {
      if (!graph[node].Is<Constant>()) left.Add(node);
    });
    return left;
  }

  static size_t CalledCount(const SubGraph& sub_graph) { return sub_graph.nested()[0].sub_graph.operator_count(); }

  [[nodiscard]] std::optional<SubGraph> FromMatch(const DataflowGraph& graph, const PatternRule& rule, const PatternMatch& match,
                                                  IndexSet called, std::vector<Refusal>* refusals) const {
    const TensorType* given = match.match.root->type().AsTensor();
    if (!given || given->ByteCount() < options_.least_bytes) return std::nullopt;
    std::vector<IndexSet> followers = Followers(graph, graph.IndexOf(match.match.root));
    if (followers.empty() || (rule.check && !rule.check(match.match).accepted)) return std::nullopt;
    const SharedAttributes label{{"Composite", LabelOf(rule, graph, match.inside)}};
    std::string reason;
    for (; !followers.empty(); followers.pop_back()) {
      SubGraph sub_graph(graph, called | followers.back(), {{SubGraph(graph, called), label}});
      const Verdict verdict = Check(graph, sub_graph);
      if (verdict.accepted) return sub_graph;
      if (reason.empty()) reason = verdict.reason;
    }
    if (refusals) refusals->push_back({"calls of " + LabelOf(rule, graph, match.inside), std::move(called), reason});
    return std::nullopt;
  }

  [[nodiscard]] Verdict Check(const DataflowGraph& graph, const SubGraph& sub_graph) const {
    if (!sub_graph.IsValid(graph, {.max_exits = 1})) return Verdict::Reject("it has several exits");
    const Result<ExtractedFunction> extracted = ExtractFunction(graph, sub_graph);
    if (!extracted) return Verdict::Reject(extracted.error().message);
    return options_.supports_calls(*extracted->function->As<Function>());
  }

  [[nodiscard]] bool MayFollow(const DataflowGraph& graph, PostDfsIndex node) const {
    return graph[node].op && options_.may_follow(graph[node].expr).accepted;
  }

  /// Sets of operators behind a node that have one exit, each in the next: up to its post-dominator, to the one of that, and so on.
  [[nodiscard]] std::vector<IndexSet> Followers(const DataflowGraph& graph, PostDfsIndex root) const {
    std::vector<IndexSet> sets;
    IndexSet inside;
    for (PostDfsIndex exit = root; AddUpTo(graph, exit, graph[exit].dominator_parent, inside); exit = graph[exit].dominator_parent)
      sets.push_back(inside);
    return sets;
  }

  /// Adds what lies between two nodes, and the second; false where something of it may not follow.
  [[nodiscard]] bool AddUpTo(const DataflowGraph& graph, PostDfsIndex from, PostDfsIndex to, IndexSet& inside) const {
    constexpr size_t kMostOperators = 32;
    if (to == DataflowGraph::kNone || graph[from].external) return false;
    std::vector<PostDfsIndex> stack = {from};
    while (!stack.empty()) {
      const PostDfsIndex node = stack.back();
      stack.pop_back();
      for (const PostDfsIndex next : graph[node].outputs) {
        if (inside.Contains(next)) continue;
        if (graph[next].block != graph[from].block || inside.Count() == kMostOperators || !MayFollow(graph, next)) return false;
        inside.Add(next);
        if (next != to) stack.push_back(next);
      }
    }
    return true;
  }

  LibraryCallOptions options_;
};

void AddParts(const SubGraph& sub_graph, const std::string& compiler, std::vector<LibraryPart>& parts) {
  for (const NestedSubGraph& nested : sub_graph.nested()) {
    const AttributeValue* label = nested.attributes.Find("Composite");
    const std::string* text = label ? label->AsString() : nullptr;
    const size_t dot = text ? text->find('.') : std::string::npos;
    if (dot != std::string::npos && text->substr(0, dot) != compiler) parts.push_back({text->substr(0, dot), nested.sub_graph.inside()});
    const AttributeValue* partition_of = nested.attributes.Find("Compiler");
    const std::string* other = partition_of ? partition_of->AsString() : nullptr;
    if (other && *other != compiler) parts.push_back({*other, nested.sub_graph.inside()});
    AddParts(nested.sub_graph, compiler, parts);
  }
}

}  // namespace

Rule LibraryCallsRule(LibraryCallOptions options) { return std::make_shared<LibraryCalls>(std::move(options)); }

std::vector<LibraryPart> LibraryParts(const CandidatePartition& candidate) {
  std::vector<LibraryPart> parts;
  AddParts(candidate.sub_graph, candidate.spec->name, parts);
  return parts;
}

}  // namespace collage
