#include <algorithm>

#include "collage/dataflow/sub_graph.h"

namespace collage {
namespace {

constexpr size_t kNamesInLabel = 8;

struct NamedNode {
  PostDfsIndex node;
  std::string name;
};

/// A composite stands for its operators; `prefix` remembers which nodes it has named already.
void CollectComposites(const SubGraph& sub_graph, IndexSet& named, std::vector<NamedNode>& names) {
  for (const NestedSubGraph& nested : sub_graph.nested()) {
    const AttributeValue* composite = nested.attributes.Find("Composite");
    if (composite && composite->AsString()) {
      names.push_back({nested.sub_graph.inside().First(), *composite->AsString()});
      named |= nested.sub_graph.inside();
    } else {
      CollectComposites(nested.sub_graph, named, names);
    }
  }
}

}  // namespace

std::string SubGraph::Label(const DataflowGraph& graph) const {
  IndexSet named;
  std::vector<NamedNode> names;
  CollectComposites(*this, named, names);
  inside().ForEach([&](PostDfsIndex node) {
    const OpDef* op = graph[node].op;
    if (op && !named.Contains(node)) names.push_back({node, op->name});
  });
  std::sort(names.begin(), names.end(), [](const NamedNode& a, const NamedNode& b) { return a.node < b.node; });
  std::string label;
  for (size_t i = 0; i < std::min(names.size(), kNamesInLabel); ++i) label += (i == 0 ? "" : "_") + names[i].name;
  if (names.size() > kNamesInLabel) label += "_and_" + std::to_string(names.size() - kNamesInLabel) + "_more";
  std::replace_if(
      label.begin(), label.end(), [](char c) { return !isalnum(static_cast<unsigned char>(c)); }, '_');
  return label.empty() ? "values" : label;
}

}  // namespace collage
