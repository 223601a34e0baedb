#include "tools/opt_data.h"

#include <span>

#include "collage/dataflow/extraction.h"
#include "collage/ir/print.h"

namespace collage::tools {
namespace {

using Json = nlohmann::ordered_json;

class Writer {
 public:
  Writer(const FunctionData& function, const PrintedText& printed, const std::vector<std::string>& backends)
      : graph_(*function.graph), printed_(printed), backends_(backends) {}

  [[nodiscard]] Json Supported(const std::vector<SupportedRegion>& regions) const {
    Json list = Json::array();
    for (const SupportedRegion& region : regions) {
      Json entry = {{"backend", Backend(region.backend)}};
      if (!region.composite.Empty()) entry["label"] = Label(region.composite);
      entry["members"] = Names(region.nodes);
      list.push_back(std::move(entry));
    }
    return list;
  }

  [[nodiscard]] Json Structural(const std::vector<SupportedRegion>& assigned) const {
    std::vector<bool> taken(graph_.size(), false);
    for (const SupportedRegion& region : assigned) region.nodes.ForEach([&](PostDfsIndex node) { taken[node] = true; });
    Json list = Json::array();
    for (PostDfsIndex node = 0; node < graph_.size(); ++node) {
      const Expr& expr = graph_[node].expr;
      if ((expr->As<Tuple>() || expr->As<TupleGetItem>()) && !taken[node]) list.push_back(Name(node));
    }
    return list;
  }

  [[nodiscard]] Json Regions(const std::vector<BackendRegion>& regions) const {
    Json list = Json::array();
    for (const BackendRegion& region : regions) {
      const SubGraph sub_graph(graph_, region.nodes);
      Json operators = Json::array();
      region.nodes.ForEach([&](PostDfsIndex node) {
        if (const OpDef* op = CalledOp(graph_[node].expr)) operators.push_back(op->name);
      });
      Json inputs = Json::array();
      for (const PostDfsIndex node : sub_graph.input()) {
        if (!graph_[node].expr->As<Function>()) inputs.push_back(Name(node));
      }
      Json outputs = Json::array();
      for (const PostDfsIndex node : sub_graph.exit()) outputs.push_back(Name(node));
      Json composites = Json::array();
      for (const NestedSubGraph& composite : region.composites) {
        composites.push_back({{"label", Label(composite.attributes)}, {"members", Names(composite.sub_graph.inside())}});
      }
      list.push_back({{"backend", Backend(region.backend)},
                      {"members", Names(region.nodes)},
                      {"operators", std::move(operators)},
                      {"inputs", std::move(inputs)},
                      {"outputs", std::move(outputs)},
                      {"composites", std::move(composites)}});
    }
    return list;
  }

 private:
  [[nodiscard]] std::string Name(PostDfsIndex node) const {
    const Expr& expr = graph_[node].expr;
    if (const auto at = printed_.names.find(expr.get()); at != printed_.names.end()) return at->second;
    const OpDef* op = CalledOp(expr);
    return "#" + std::to_string(node) + (op ? " " + op->name : "");
  }

  [[nodiscard]] Json Names(const IndexSet& nodes) const {
    Json list = Json::array();
    nodes.ForEach([&](PostDfsIndex node) { list.push_back(Name(node)); });
    return list;
  }

  [[nodiscard]] std::string Backend(size_t index) const { return index < backends_.size() ? backends_[index] : "native"; }

  static std::string Label(const Attributes& attributes) {
    const AttributeValue* label = attributes.Find("Composite");
    return label && label->AsString() ? *label->AsString() : std::string();
  }

  const DataflowGraph& graph_;
  const PrintedText& printed_;
  const std::vector<std::string>& backends_;
};

}  // namespace

nlohmann::ordered_json ToJson(const std::vector<FunctionData>& functions, DataStage stage, const IRModule& module,
                              const std::string& program, const std::vector<std::string>& backends) {
  const PrintedText printed = PrintModule(module);
  Json list = Json::array();
  for (const FunctionData& function : functions) {
    const Writer writer(function, printed, backends);
    Json entry = {{"function", "@" + function.name}};
    if (stage == DataStage::kSupported) entry["supported"] = writer.Supported(*function.supported);
    if (stage == DataStage::kAssigned) {
      entry["assigned"] = writer.Supported(*function.assigned);
      entry["structural"] = writer.Structural(*function.assigned);
    }
    if (stage == DataStage::kRegions) entry["regions"] = writer.Regions(*function.regions);
    list.push_back(std::move(entry));
  }
  return {{"program", program}, {"functions", std::move(list)}};
}

}  // namespace collage::tools
