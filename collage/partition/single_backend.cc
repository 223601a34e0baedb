#include "collage/partition/single_backend.h"

#include <algorithm>
#include <unordered_map>

#include "collage/candidate/gather.h"
#include "collage/dataflow/contraction.h"

namespace collage {
namespace {

/// The Composite label when a candidate is one labelled match, or nothing.
std::string LabelOf(const SubGraph& sub_graph) {
  for (const NestedSubGraph& nested : sub_graph.nested()) {
    const AttributeValue* label = nested.attributes.Find("Composite");
    if (label && label->AsString()) return *label->AsString();
    return LabelOf(nested.sub_graph);
  }
  return {};
}

bool IsOnlyViews(const DataflowGraph& graph, const SubGraph& sub_graph) {
  bool only = true;
  sub_graph.inside().ForEach([&](PostDfsIndex node) {
    const OpDef* op = graph[node].op;
    only = only && (!op || op->is_view);
  });
  return only;
}

class Greedy {
 public:
  explicit Greedy(const DataflowGraph& graph) : graph_(graph), contracted_(graph) {}

  /// Takes what is left for one spec in its own order of preference.
  void TakeAll(const std::vector<CandidatePartition>& candidates, const std::string& name) {
    std::vector<const CandidatePartition*> labelled;
    std::vector<const CandidatePartition*> plain;
    std::unordered_map<std::string, size_t> rank;
    for (const CandidatePartition& candidate : candidates) {
      if (candidate.spec->name != name || candidate.spec->is_host || IsOnlyViews(graph_, candidate.sub_graph)) continue;
      const std::string label = LabelOf(candidate.sub_graph);
      if (!label.empty()) rank.emplace(label, rank.size());
      (label.empty() ? plain : labelled).push_back(&candidate);
    }
    const auto rank_of = [&](const CandidatePartition* candidate) { return rank.at(LabelOf(candidate->sub_graph)); };
    std::stable_sort(labelled.begin(), labelled.end(), [&](const CandidatePartition* a, const CandidatePartition* b) {
      const size_t rank_a = rank_of(a);
      const size_t rank_b = rank_of(b);
      if (rank_a != rank_b) return rank_a < rank_b;
      const IndexSet& inside_a = a->sub_graph.inside();
      const IndexSet& inside_b = b->sub_graph.inside();
      if (inside_a.Last() != inside_b.Last()) return inside_a.Last() > inside_b.Last();
      return a->sub_graph.operator_count() > b->sub_graph.operator_count();
    });
    std::stable_sort(plain.begin(), plain.end(), [](const CandidatePartition* a, const CandidatePartition* b) {
      if (a->sub_graph.operator_count() != b->sub_graph.operator_count()) {
        return a->sub_graph.operator_count() > b->sub_graph.operator_count();
      }
      return a->sub_graph.inside().First() < b->sub_graph.inside().First();
    });
    for (const CandidatePartition* candidate : labelled) Take(*candidate);
    for (const CandidatePartition* candidate : plain) Take(*candidate);
  }

  bool Take(const CandidatePartition& candidate) {
    const IndexSet& inside = candidate.sub_graph.inside();
    if (covered_.Intersects(inside) || !contracted_.TryMerge(inside.ToVector())) return false;
    covered_ |= inside;
    cover_.push_back({candidate, {}});
    return true;
  }

  [[nodiscard]] bool Covers(PostDfsIndex node) const { return covered_.Contains(node); }
  Cover Finish() {
    std::sort(cover_.begin(), cover_.end(), [](const ChosenPartition& a, const ChosenPartition& b) {
      return a.candidate.sub_graph.inside().First() < b.candidate.sub_graph.inside().First();
    });
    return std::move(cover_);
  }

 private:
  const DataflowGraph& graph_;
  ContractedGraph contracted_;
  IndexSet covered_;
  Cover cover_;
};

}  // namespace

Result<Cover> SingleBackendCover(const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates, const std::string& backend,
                                 const SpecPointer& fallback) {
  const bool known = std::any_of(candidates.begin(), candidates.end(), [&](const CandidatePartition& candidate) {
    return candidate.spec->name == backend && !candidate.spec->is_host;
  });
  if (!known) return Fail("backend '" + backend + "' takes no part of this program");
  Greedy greedy(graph);
  greedy.TakeAll(candidates, backend);
  if (backend != "native") greedy.TakeAll(candidates, "native");
  const SpecPointer host = HostSpec();
  std::vector<CandidatePartition> single(graph.size());
  if (fallback) {
    for (CandidatePartition& candidate : AllCandidates(graph, fallback)) {
      single[candidate.sub_graph.inside().First()] = std::move(candidate);
    }
  }
  for (PostDfsIndex node = 0; node < graph.size(); ++node) {
    if (greedy.Covers(node)) continue;
    const OpDef* op = graph[node].op;
    if (!op || op->is_view) {
      greedy.Take({SubGraph(graph, IndexSet({node})), host});
    } else if (!single[node].spec || !greedy.Take(single[node])) {
      return Fail("no backend takes " + op->name + " (node " + std::to_string(node) + ") in the plan for '" + backend + "'");
    }
  }
  return greedy.Finish();
}

}  // namespace collage
