#include "collage/dataflow/evaluation_order.h"

#include <algorithm>

namespace collage {

std::vector<PostDfsIndex> DeepestFirst(const DataflowGraph& graph, PostDfsIndex last,
                                       const std::unordered_map<PostDfsIndex, std::vector<PostDfsIndex>>& also_before) {
  struct Open {
    PostDfsIndex node;
    std::vector<PostDfsIndex> waiting;  // the next one last
  };
  std::vector<PostDfsIndex> order;
  order.reserve(graph.size());
  std::vector<bool> is_seen(graph.size(), false);
  std::vector<Open> stack;
  const auto open = [&](PostDfsIndex node) {
    if (is_seen[node]) return;
    is_seen[node] = true;
    std::vector<PostDfsIndex> waiting(graph[node].inputs.begin(), graph[node].inputs.end());
    if (const auto also = also_before.find(node); also != also_before.end())
      waiting.insert(waiting.end(), also->second.begin(), also->second.end());
    std::reverse(waiting.begin(), waiting.end());
    std::stable_sort(waiting.begin(), waiting.end(), [&](PostDfsIndex a, PostDfsIndex b) { return graph[a].level < graph[b].level; });
    stack.push_back({node, std::move(waiting)});
  };
  const auto finish = [&](PostDfsIndex node) {
    open(node);
    while (!stack.empty()) {
      if (stack.back().waiting.empty()) {
        order.push_back(stack.back().node);
        stack.pop_back();
        continue;
      }
      const PostDfsIndex next = stack.back().waiting.back();
      stack.back().waiting.pop_back();
      open(next);
    }
  };
  finish(last);
  for (PostDfsIndex node = 0; node < graph.size(); ++node) finish(node);
  return order;
}

}  // namespace collage
