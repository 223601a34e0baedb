#include "collage/dataflow/evaluation_order.h"

#include <algorithm>
#include <cmath>

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

/// Over all operators that run until `last` is there, how many sets of the values that then wait for their last use there are.
double SetsThatWait(const DataflowGraph& graph, const std::vector<PostDfsIndex>& order, PostDfsIndex last) {
  std::vector<PostDfsIndex> last_use(graph.size(), graph.size());
  const auto end = std::find(order.begin(), order.end(), last) + 1;
  for (auto node = order.begin(); node != end; ++node) {
    for (const PostDfsIndex input : graph[*node].inputs) last_use[input] = *node;
  }
  double sets = 0;
  int waiting = 0;
  for (auto node = order.begin(); node != end; ++node) {
    for (const PostDfsIndex input : graph[*node].inputs) waiting -= graph[input].op && last_use[input] == *node ? 1 : 0;
    if (!graph[*node].op) continue;
    waiting += last_use[*node] < graph.size() ? 1 : 0;
    sets += std::ldexp(1.0, waiting);
  }
  return sets;
}

}  // namespace

std::vector<PostDfsIndex> EvaluationOrder(const DataflowGraph& graph, PostDfsIndex last, const AlsoBefore& also_before) {
  std::vector<PostDfsIndex> deepest_first = InputsFirst(graph, last, also_before, true);
  std::vector<PostDfsIndex> by_arguments = InputsFirst(graph, last, also_before, false);
  // One value more that waits all along is twice as many. Less than that does not tell which order candidates reach across.
  return 2 * SetsThatWait(graph, by_arguments, last) < SetsThatWait(graph, deepest_first, last) ? by_arguments : deepest_first;
}

}  // namespace collage
