#include "collage/dataflow/evaluation_order.h"

#include <algorithm>

namespace collage {
namespace {

using AlsoBefore = std::unordered_map<PostDfsIndex, std::vector<PostDfsIndex>>;

std::vector<PostDfsIndex> InputsFirst(const DataflowGraph& graph, PostDfsIndex last, const AlsoBefore& also_before, bool deepest_first) {
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
    const auto is_less_deep = [&](PostDfsIndex a, PostDfsIndex b) { return graph[a].level < graph[b].level; };
    if (deepest_first) std::stable_sort(waiting.begin(), waiting.end(), is_less_deep);
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

/// Over all values that are computed, how many operators run while they wait for their last use.
size_t Waiting(const DataflowGraph& graph, const std::vector<PostDfsIndex>& order) {
  std::vector<size_t> begin(graph.size(), 0);
  std::vector<size_t> end(graph.size(), 0);
  size_t run = 0;
  for (const PostDfsIndex node : order) {
    for (const PostDfsIndex input : graph[node].inputs) end[input] = run;
    begin[node] = end[node] = graph[node].op ? ++run : run;
  }
  size_t waiting = 0;
  for (const PostDfsIndex node : order) waiting += graph[node].inputs.empty() ? 0 : end[node] - begin[node];
  return waiting;
}

}  // namespace

std::vector<PostDfsIndex> EvaluationOrder(const DataflowGraph& graph, PostDfsIndex last, const AlsoBefore& also_before) {
  std::vector<PostDfsIndex> deepest_first = InputsFirst(graph, last, also_before, true);
  std::vector<PostDfsIndex> by_arguments = InputsFirst(graph, last, also_before, false);
  return Waiting(graph, by_arguments) < Waiting(graph, deepest_first) ? by_arguments : deepest_first;
}

}  // namespace collage
