#include "collage/onnx/node_order.h"

#include <functional>
#include <queue>
#include <unordered_map>

#include "onnx_message.pb.h"

namespace collage::onnx_io {

void AddNamesRead(const onnx_message::NodeProto& node, std::unordered_set<std::string>& names) {
  // Recursion is as deep as bodies nest, which the message parser bounds.
  names.insert(node.input().begin(), node.input().end());
  for (const auto& attribute : node.attribute()) {
    for (const auto& inner : attribute.g().node()) AddNamesRead(inner, names);
    for (const auto& output : attribute.g().output()) names.insert(output.name());
  }
}

std::vector<int> NodeOrder(const onnx_message::GraphProto& graph) {
  std::unordered_map<std::string, int> giver;
  for (int i = 0; i < graph.node_size(); ++i) {
    for (const std::string& name : graph.node(i).output()) {
      if (!name.empty()) giver.emplace(name, i);
    }
  }
  const auto count = static_cast<size_t>(graph.node_size());
  std::vector<std::vector<int>> readers(count);
  std::vector<size_t> awaited(count, 0);
  for (int i = 0; i < graph.node_size(); ++i) {
    std::unordered_set<std::string> names;
    AddNamesRead(graph.node(i), names);
    for (const std::string& name : names) {
      const auto found = giver.find(name);
      if (found == giver.end() || found->second == i) continue;
      readers[static_cast<size_t>(found->second)].push_back(i);
      ++awaited[static_cast<size_t>(i)];
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < graph.node_size(); ++i) {
    if (awaited[static_cast<size_t>(i)] == 0) ready.push(i);
  }
  std::vector<int> order;
  order.reserve(count);
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const int reader : readers[static_cast<size_t>(order.back())]) {
      if (--awaited[static_cast<size_t>(reader)] == 0) ready.push(reader);
    }
  }
  for (int i = 0; i < graph.node_size(); ++i) {
    if (awaited[static_cast<size_t>(i)] > 0) order.push_back(i);
  }
  return order;
}

}  // namespace collage::onnx_io
