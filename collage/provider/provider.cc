#include "collage/provider/provider.h"

#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "collage/onnx/reader.h"
#include "collage/provider/fused_node.h"
#include "collage/provider/graph_index.h"
#include "collage/provider/guarded.h"
#include "collage/provider/programs.h"
#include "collage/provider/regions.h"
#include "collage/provider/written_graph.h"

namespace collage::provider {
namespace {

/// Whether Collage reads it, in all of these shapes, or in its own where there are none.
Status CheckReadable(const WrittenGraph& graph, const std::vector<InputShapes>& profiles) {
  const std::string bytes = COLLAGE_TRY(graph.Bytes());
  for (const InputShapes& shapes : profiles.empty() ? std::vector<InputShapes>{{}} : profiles) {
    const Result<OnnxModel> model = ReadOnnx(bytes, {.input_shapes = shapes});
    if (!model) return Fail(model.error());
  }
  return {};
}

/// Takes what it can of a graph that cannot be read as a whole, node by node.
class RegionFinder {
 public:
  RegionFinder(const Ort& ort, const GraphIndex& index) : ort_(ort), index_(index) {}

  Result<std::vector<std::vector<size_t>>> Find() {
    std::vector<bool> taken;
    for (size_t node = 0; node < index_.nodes().size(); ++node) taken.push_back(COLLAGE_TRY(IsReadable(node)));
    std::vector<std::vector<size_t>> readable;
    for (std::vector<size_t>& region : Regions(taken, index_.producers())) {
      const Result<WrittenGraph> written = index_.Write(region);
      const Status status = written ? CheckReadable(*written, {}) : Status(Fail(written.error()));
      if (!status) {
        Leave(region.size(), "a region of " + std::to_string(region.size()) + " nodes: " + status.error().message);
      } else {
        readable.push_back(std::move(region));
      }
    }
    return readable;
  }

  [[nodiscard]] size_t left() const { return left_; }
  /// One for each operator.
  [[nodiscard]] const std::string& reasons() const { return reasons_; }

 private:
  Result<bool> IsReadable(size_t node) {
    const std::string other = COLLAGE_TRY(ort_.Get<const char*>(ort_.api.Node_GetEpName, index_.nodes()[node]));
    if (!other.empty()) return false;
    const Result<WrittenGraph> written = index_.Write({node});
    const Status status = written ? CheckReadable(*written, {}) : Status(Fail(written.error()));
    if (status) return true;
    const std::string type = COLLAGE_TRY(ort_.Get<const char*>(ort_.api.Node_GetOperatorType, index_.nodes()[node]));
    Leave(1, told_.insert(type).second ? COLLAGE_TRY(Describe(ort_, index_.nodes()[node])) + ": " + status.error().message : "");
    return false;
  }

  void Leave(size_t nodes, const std::string& reason) {
    left_ += nodes;
    if (!reason.empty()) reasons_ += "; " + reason;
  }

  const Ort& ort_;
  const GraphIndex& index_;
  size_t left_ = 0;
  std::set<std::string> told_;
  std::string reasons_;
};

Result<std::vector<std::string>> Names(const Ort& ort, const std::vector<const OrtValueInfo*>& values) {
  std::vector<std::string> names;
  for (const OrtValueInfo* value : values) names.push_back(COLLAGE_TRY(ort.Name(value)));
  return names;
}

}  // namespace

Provider::Provider(const Ort& ort, const OrtLogger* logger, ProviderOptions options)
    : ort_(ort), log_(ort, logger), options_(std::move(options)) {
  GetName = [](const OrtEp*) { return kProviderName; };
  GetCapability = [](OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* support) -> OrtStatus* {
    const auto* provider = static_cast<Provider*>(self);
    return Guarded(provider->ort_.api, kProviderFailed, [&] { return provider->TakeNodes(graph, support); });
  };
  OrtEp::Compile = [](OrtEp* self, const OrtGraph** graphs, const OrtNode** fused_nodes, size_t count, OrtNodeComputeInfo** infos,
                      OrtNode**) -> OrtStatus* {
    const auto* provider = static_cast<Provider*>(self);
    return Guarded(provider->ort_.api, kProviderFailed, [&] { return provider->MakePrograms(graphs, fused_nodes, count, infos); });
  };
  ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
    for (size_t i = 0; i < count; ++i) delete static_cast<FusedNode*>(infos[i]);
  };
}

Status Provider::TakeNodes(const OrtGraph* graph, OrtEpGraphSupportInfo* support) const {
  // A body is taken with the node that holds it, or not at all: it is asked for first, and a part of it would keep the rest from being
  // read.
  if (COLLAGE_TRY(ort_.Get<const OrtNode*>(ort_.api.Graph_GetParentNode, graph))) return {};
  const GraphIndex index = COLLAGE_TRY(GraphIndex::Of(ort_, graph));
  if (index.nodes().empty()) return {};
  const auto take = [&](const std::vector<size_t>& region) {
    const std::vector<const OrtNode*> nodes = index.NodesOf(region);
    // Weights are in the program.
    OrtNodeFusionOptions fusion;
    fusion.drop_constant_initializers = true;
    return ort_.Check(ort_.ep.EpGraphSupportInfo_AddNodesToFuse(support, nodes.data(), nodes.size(), &fusion));
  };
  std::vector<size_t> all(index.nodes().size());
  std::iota(all.begin(), all.end(), size_t{0});
  const Result<WrittenGraph> whole = index.Write(all);
  const Status status = whole ? CheckReadable(*whole, options_.profiles) : Status(Fail(whole.error()));
  if (status) return take(all);
  if (!options_.profiles.empty()) {
    log_.Warning("takes no node, since shapes between nodes are known of whole graphs only: " + status.error().message);
    return {};
  }
  RegionFinder finder(ort_, index);
  for (const std::vector<size_t>& region : COLLAGE_TRY(finder.Find())) COLLAGE_TRY_STATUS(take(region));
  log_.Warning("leaves " + std::to_string(finder.left()) + " of " + std::to_string(all.size()) + " nodes to other providers" +
               finder.reasons() + "; of the whole graph: " + status.error().message);
  return {};
}

Status Provider::MakePrograms(const OrtGraph** graphs, const OrtNode** fused_nodes, size_t count, OrtNodeComputeInfo** infos) const {
  // The budget is for all of them, by their sizes.
  std::vector<size_t> sizes;
  for (size_t i = 0; i < count; ++i) sizes.push_back(COLLAGE_TRY(ort_.Get<size_t>(ort_.api.Graph_GetNumNodes, graphs[i])));
  const auto all = static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), size_t{0}));
  for (size_t i = 0; i < count; ++i) {
    Result<OrtNodeComputeInfo*> made = MakeProgram(graphs[i], fused_nodes[i], static_cast<double>(sizes[i]) / all);
    if (!made) {
      // Those before it are nobody's after an error.
      for (size_t before = 0; before < i; ++before) delete static_cast<FusedNode*>(std::exchange(infos[before], nullptr));
      return Fail(made.error());
    }
    infos[i] = *made;
  }
  return {};
}

Result<OrtNodeComputeInfo*> Provider::MakeProgram(const OrtGraph* graph, const OrtNode* fused_node, double budget_share) const {
  const auto nodes = COLLAGE_TRY(ort_.List<const OrtNode*>(ort_.api.Graph_GetNumNodes, ort_.api.Graph_GetNodes, graph));
  const auto inputs = COLLAGE_TRY(InputsOf(ort_, fused_node));
  const auto outputs = COLLAGE_TRY(OutputsOf(ort_, fused_node));
  const WrittenGraph written = COLLAGE_TRY(WriteGraph(ort_, graph, nodes, inputs, outputs));
  const std::filesystem::path file = ProgramFile(options_, written.Identity());
  const auto tell = [&](const std::string& message) { log_.Warning(std::to_string(nodes.size()) + " nodes: " + message); };
  Program program = COLLAGE_TRY(FindOrCompile(
      file, options_, budget_share, [&] { return written.Bytes(); }, tell));
  std::unique_ptr<FusedNode> node = COLLAGE_TRY(FusedNode::Create(ort_, std::move(program), !options_.profiles.empty(),
                                                                  COLLAGE_TRY(Names(ort_, inputs)), COLLAGE_TRY(Names(ort_, outputs))));
  log_.Information(std::to_string(nodes.size()) + " nodes run by " + file.string());
  return node.release();
}

}  // namespace collage::provider
