#include "collage/onnx/cut.h"

#include <map>
#include <unordered_set>

#include "collage/onnx/fold.h"
#include "collage/onnx/graph_message.h"
#include "collage/onnx/sequence.h"

namespace collage::onnx_io {
namespace {

class Cutter {
 public:
  Cutter(const OnnxGraph& graph, const GraphReader& reader, const std::vector<int64_t>& row_counts)
      : graph_(graph), reader_(reader), row_counts_(row_counts) {}

  Result<Cut> Run() {
    rest_.opset = graph_.opset;
    for (const size_t index : reader_.left_out()) {
      COLLAGE_TRY_STATUS(CheckNode(graph_, index));
      for (const std::string& name : NamesRead(graph_.nodes[index])) COLLAGE_TRY_STATUS(Pass(name));
      rest_.nodes.push_back(graph_.nodes[index]);
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) COLLAGE_TRY_STATUS(PassOutput(i));
    if (!row_counts_.empty()) FindRegions();
    parts_.message = COLLAGE_TRY(ModelMessage(rest_));
    parts_.reason = reader_.reason();
    cut_.remainder = COLLAGE_TRY(CreateRemainder(std::move(parts_)));
    return std::move(cut_);
  }

 private:
  /// What the head knows under this name; names of other nodes that are left out, or of bodies, are none of its.
  Status Pass(const std::string& name) {
    const Expr value = name.empty() ? nullptr : reader_.Find(name);
    if (value == nullptr || !passed_.insert(name).second) return {};
    if (const Tensor* constant = ConstantValue(value)) {
      parts_.weights.emplace_back(name, *constant);
      return {};
    }
    if (value->type().AsTensor()) {
      parts_.inputs.push_back({name, std::nullopt});
      Give(value, name);
      return {};
    }
    if (IsNothing(value)) return Fail("'" + name + "' is an optional without a value, which is read where extents depend on data");
    const std::vector<Expr> elements = COLLAGE_TRY(ElementsOf(value));
    parts_.inputs.push_back({name, elements.size()});
    for (size_t i = 0; i < elements.size(); ++i) Give(elements[i], name + "[" + std::to_string(i) + "]");
    return {};
  }

  void FindRegions() {
    OnnxGraph graph = rest_;
    graph.initializers = parts_.weights;
    std::map<std::string, TensorType> inputs;
    for (size_t i = 0; i < cut_.head.size(); ++i) inputs.emplace(cut_.head_names[i], *cut_.head[i]->type().AsTensor());
    RowRegions found = FindRowRegions(graph, inputs, row_counts_);
    rest_.nodes = std::move(found.graph.nodes);
    parts_.regions = std::move(found.regions);
    cut_.regions = std::move(found.functions);
  }

  void Give(const Expr& tensor, std::string name) {
    cut_.head.push_back(tensor);
    cut_.head_names.push_back(std::move(name));
  }

  Status PassOutput(size_t index) {
    const std::string& name = graph_.outputs[index];
    COLLAGE_TRY_STATUS(Pass(name));
    rest_.outputs.push_back(name);
    rest_.output_types.push_back(graph_.output_types[index]);
    const Expr value = reader_.Find(name);
    if (value == nullptr && reader_.IsLeftOut(name)) return {};
    if (value == nullptr) return Fail("output '" + name + "' is given by no node, input or initializer");
    const TensorType* type = value->type().AsTensor();
    if (type == nullptr) return {};  // a sequence, as it is declared
    OnnxInput known{name, type->dtype, std::vector<OnnxDimension>()};
    for (const int64_t extent : type->shape) known.shape->push_back({extent, ""});
    rest_.output_types.back() = std::move(known);
    return {};
  }

  const OnnxGraph& graph_;
  const GraphReader& reader_;
  const std::vector<int64_t>& row_counts_;
  OnnxGraph rest_;
  Remainder::Parts parts_;
  Cut cut_;
  std::unordered_set<std::string> passed_;
};

}  // namespace

Result<Cut> CutGraph(const OnnxGraph& graph, const GraphReader& reader, const std::vector<int64_t>& row_counts) {
  return Cutter(graph, reader, row_counts).Run();
}

}  // namespace collage::onnx_io
