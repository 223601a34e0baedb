#include "collage/candidate/regions.h"
#include "collage/partition/classic_flow.h"

namespace collage {

std::vector<BackendRegion> MergeAssigned(const DataflowGraph& graph, const std::vector<SupportedRegion>& assigned, size_t native) {
  std::vector<Region> parts;
  std::vector<const SupportedRegion*> part_at(graph.size(), nullptr);  // by first node
  for (const SupportedRegion& region : assigned) {
    if (region.backend == native) continue;
    parts.push_back({region.backend, region.nodes});
    part_at[region.nodes.First()] = &region;
  }
  std::vector<BackendRegion> regions;
  for (Region& region : MergeRegions(graph, parts, true)) {
    BackendRegion merged{region.owner, std::move(region.nodes), {}};
    merged.nodes.ForEach([&](PostDfsIndex node) {
      if (!part_at[node] || part_at[node]->composite.Empty()) return;
      merged.composites.push_back({SubGraph(graph, part_at[node]->nodes), part_at[node]->composite});
    });
    regions.push_back(std::move(merged));
  }
  return regions;
}

}  // namespace collage
