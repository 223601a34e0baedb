#include <algorithm>
#include <set>

#include "collage/candidate/regions.h"
#include "collage/ir/call_work.h"

namespace collage {
namespace {

double WorkOf(const DataflowGraph::Node& node) {
  const Work work = WorkOfCall(node.expr);
  // Bytes count as the flops that a processor does meanwhile (about fifteen on today's).
  return work.flops + 15 * work.bytes;
}

/// Positions k such that a single value crosses from members[0..k] to the rest. Members are in dataflow order, so both sides
/// are convex wherever the whole is.
std::vector<size_t> CutPositions(const DataflowGraph& graph, const std::vector<PostDfsIndex>& members) {
  std::vector<size_t> last_use(members.size(), 0);
  for (size_t k = 0; k < members.size(); ++k) {
    for (const PostDfsIndex input : graph[members[k]].inputs) {
      const auto at = std::lower_bound(members.begin(), members.end(), input);
      if (at != members.end() && *at == input) last_use[static_cast<size_t>(at - members.begin())] = k;
    }
  }
  std::vector<size_t> ends(members.size(), 0);
  std::vector<size_t> positions;
  size_t crossing = 0;
  for (size_t k = 0; k + 1 < members.size(); ++k) {
    if (last_use[k] > k) {
      ++crossing;
      ++ends[last_use[k]];
    }
    crossing -= ends[k];
    const DataflowGraph::Node& node = graph[members[k]];
    if (crossing <= 1 && node.op && node.expr->type().AsTensor()) positions.push_back(k);
  }
  return positions;
}

/// At most `count` of the positions, nearest to where even shares of the work end.
std::vector<size_t> ChooseEvenly(const std::vector<size_t>& positions, const std::vector<double>& work_before, size_t count) {
  if (positions.size() <= count) return positions;
  std::set<size_t> chosen;
  for (size_t share = 1; share <= count; ++share) {
    const double target = work_before.back() * static_cast<double>(share) / static_cast<double>(count + 1);
    const auto at = std::lower_bound(positions.begin(), positions.end(), target,
                                     [&](size_t position, double value) { return work_before[position] < value; });
    chosen.insert(at == positions.end() ? positions.back() : *at);
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace

std::vector<IndexSet> CutRegion(const DataflowGraph& graph, const IndexSet& region, const RegionCutLimits& limits) {
  const std::vector<PostDfsIndex> members = region.ToVector();
  const std::vector<size_t> positions = CutPositions(graph, members);
  std::vector<double> work_before(members.size());
  double total = 0;
  for (size_t k = 0; k < members.size(); ++k) work_before[k] = total += WorkOf(graph[members[k]]);
  std::set<std::pair<size_t, size_t>> pieces;  // [begin, end)
  const auto ends_of = [&](size_t count) {
    std::vector<size_t> ends = {0};
    for (const size_t position : ChooseEvenly(positions, work_before, count)) ends.push_back(position + 1);
    ends.push_back(members.size());
    return ends;
  };
  const std::vector<size_t> coarse = ends_of(limits.cut_points);
  for (size_t i = 0; i < coarse.size(); ++i) {
    for (size_t j = i + 1; j < coarse.size(); ++j) pieces.emplace(coarse[i], coarse[j]);
  }
  const std::vector<size_t> fine = ends_of(limits.fine_cut_points);
  for (size_t i = 0; i + 1 < fine.size(); ++i) pieces.emplace(fine[i], fine[i + 1]);
  pieces.erase({0, members.size()});
  std::vector<IndexSet> sets = {region};
  for (const auto& [begin, end] : pieces) {
    const auto at = members.begin();
    sets.emplace_back(std::vector<size_t>(at + static_cast<std::ptrdiff_t>(begin), at + static_cast<std::ptrdiff_t>(end)));
  }
  return sets;
}

}  // namespace collage
