#include "collage/dataflow/contraction.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace collage {

bool ContractionIsAcyclic(const DataflowGraph& graph, const std::vector<const IndexSet*>& sets) {
  if (sets.empty()) return true;
  PostDfsIndex first = graph.size();
  PostDfsIndex last = 0;
  for (const IndexSet* set : sets) {
    first = std::min(first, set->First());
    last = std::max(last, set->Last());
  }
  // A cycle passes only nodes of the stretch: a path leads to greater indices, except where it crosses a set.
  std::vector<size_t> unit(last - first + 1);
  for (size_t i = 0; i < unit.size(); ++i) unit[i] = i;
  std::vector<std::vector<PostDfsIndex>> members(unit.size());
  for (const IndexSet* set : sets) set->ForEach([&](PostDfsIndex node) { unit[node - first] = set->First() - first; });
  for (size_t i = 0; i < unit.size(); ++i) members[unit[i]].push_back(first + i);
  std::vector<size_t> waiting(unit.size(), 0);
  const auto for_each_edge = [&](size_t from, auto&& visit) {
    for (const PostDfsIndex node : members[from]) {
      for (const PostDfsIndex output : graph[node].outputs) {
        if (output <= last && unit[output - first] != from) visit(unit[output - first]);
      }
    }
  };
  for (size_t i = 0; i < unit.size(); ++i) for_each_edge(i, [&](size_t to) { ++waiting[to]; });
  std::vector<size_t> ready;
  size_t units = 0;
  for (size_t i = 0; i < unit.size(); ++i) {
    if (members[i].empty()) continue;
    ++units;
    if (waiting[i] == 0) ready.push_back(i);
  }
  for (size_t done = 0; done < ready.size(); ++done) {
    for_each_edge(ready[done], [&](size_t to) {
      if (--waiting[to] == 0) ready.push_back(to);
    });
  }
  return ready.size() == units;
}

ContractedGraph::ContractedGraph(const DataflowGraph& graph) {
  const size_t count = graph.size();
  parent_.resize(count);
  position_.resize(count);
  members_.resize(count);
  inputs_.resize(count);
  outputs_.resize(count);
  is_free_source_.resize(count);
  for (PostDfsIndex i = 0; i < count; ++i) {
    parent_[i] = position_[i] = i;
    members_[i] = {i};
    outputs_[i] = graph[i].outputs.ToVector();
    for (const PostDfsIndex input : graph[i].inputs) {
      if (!graph[input].inputs.empty()) inputs_[i].push_back(input);
    }
    is_free_source_[i] = graph[i].inputs.empty();
  }
}

void ContractedGraph::BindSources(const std::vector<PostDfsIndex>& nodes) {
  for (const PostDfsIndex node : nodes) {
    if (!is_free_source_[node]) continue;
    is_free_source_[node] = false;
    for (const PostDfsIndex output : outputs_[node]) inputs_[GroupOf(output)].push_back(node);
  }
}

size_t ContractedGraph::GroupOf(PostDfsIndex node) const {
  while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
  return node;
}

template <class Visitor>
void ContractedGraph::ForEachNeighbour(size_t group, bool forward, Visitor&& visit) {
  std::vector<PostDfsIndex>& list = forward ? outputs_[group] : inputs_[group];
  std::erase_if(list, [&](PostDfsIndex node) { return GroupOf(node) == group; });
  for (const PostDfsIndex node : list) visit(GroupOf(node));
}

bool ContractedGraph::Reach(const std::vector<size_t>& merged, bool forward, size_t limit, std::vector<size_t>& reached) {
  const std::unordered_set<size_t> targets(merged.begin(), merged.end());
  std::unordered_set<size_t> seen;
  bool comes_back = false;
  const auto visit = [&](size_t next, bool from_merged) {
    if (targets.contains(next)) {
      comes_back = comes_back || !from_merged;
    } else if (forward ? position_[next] < limit : position_[next] > limit) {
      if (seen.insert(next).second) reached.push_back(next);
    }
  };
  for (const size_t group : merged) ForEachNeighbour(group, forward, [&](size_t next) { visit(next, true); });
  for (size_t i = 0; i < reached.size() && !comes_back; ++i) {
    ForEachNeighbour(reached[i], forward, [&](size_t next) { visit(next, false); });
  }
  return !comes_back;
}

std::vector<size_t> ContractedGraph::GroupsOf(const std::vector<PostDfsIndex>& nodes) const {
  std::vector<size_t> groups;
  for (const PostDfsIndex node : nodes) groups.push_back(GroupOf(node));
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

std::vector<size_t> ContractedGraph::Between(const std::vector<PostDfsIndex>& nodes) {
  const std::vector<size_t> merged = GroupsOf(nodes);
  const std::unordered_set<size_t> ends(merged.begin(), merged.end());
  size_t high = 0;
  for (const size_t group : merged) high = std::max(high, position_[group]);
  std::unordered_set<size_t> below = ends;
  std::vector<size_t> queue = merged;
  for (size_t i = 0; i < queue.size(); ++i) {
    ForEachNeighbour(queue[i], true, [&](size_t next) {
      if (position_[next] < high && below.insert(next).second) queue.push_back(next);
    });
  }
  std::unordered_set<size_t> seen = ends;
  std::vector<size_t> between;
  const auto visit = [&](size_t next) {
    if (below.contains(next) && seen.insert(next).second) between.push_back(next);
  };
  for (const size_t group : merged) ForEachNeighbour(group, false, visit);
  for (size_t i = 0; i < between.size(); ++i) ForEachNeighbour(between[i], false, visit);
  return between;
}

bool ContractedGraph::TryMerge(const std::vector<PostDfsIndex>& nodes) {
  const std::vector<size_t> merged = GroupsOf(nodes);
  if (merged.size() < 2) return true;
  size_t low = position_[merged[0]];
  size_t high = low;
  for (const size_t group : merged) {
    low = std::min(low, position_[group]);
    high = std::max(high, position_[group]);
  }
  std::vector<size_t> after;
  std::vector<size_t> before;
  if (!Reach(merged, true, high, after)) return false;
  BindSources(nodes);
  // What a source feeds may stand before the rest of its new group.
  for (const size_t group : after) low = std::min(low, position_[group]);
  Reach(merged, false, low, before);
  Reorder(before, merged, after);
  Join(merged);
  return true;
}

void ContractedGraph::Reorder(const std::vector<size_t>& before, const std::vector<size_t>& merged, const std::vector<size_t>& after) {
  std::vector<size_t> slots;
  for (const auto* groups : {&before, &merged, &after}) {
    for (const size_t group : *groups) slots.push_back(position_[group]);
  }
  std::sort(slots.begin(), slots.end());
  const auto by_position = [&](std::vector<size_t> groups) {
    std::sort(groups.begin(), groups.end(), [&](size_t a, size_t b) { return position_[a] < position_[b]; });
    return groups;
  };
  const std::vector<size_t> earlier = by_position(before);
  const std::vector<size_t> later = by_position(after);
  for (size_t i = 0; i < earlier.size(); ++i) position_[earlier[i]] = slots[i];
  for (const size_t group : merged) position_[group] = slots[earlier.size() + merged.size() - 1];
  for (size_t i = 0; i < later.size(); ++i) position_[later[i]] = slots[earlier.size() + merged.size() + i];
}

void ContractedGraph::Join(const std::vector<size_t>& merged) {
  const size_t keep = *std::max_element(merged.begin(), merged.end(), [&](size_t a, size_t b) {
    return members_[a].size() + outputs_[a].size() + inputs_[a].size() < members_[b].size() + outputs_[b].size() + inputs_[b].size();
  });
  for (const size_t group : merged) {
    if (group == keep) continue;
    parent_[group] = keep;
    for (auto* lists : {&members_, &inputs_, &outputs_}) {
      std::vector<PostDfsIndex>& from = (*lists)[group];
      (*lists)[keep].insert((*lists)[keep].end(), from.begin(), from.end());
      from = {};
    }
  }
}

}  // namespace collage
