#include "collage/onnx/remainder.h"

#include <algorithm>

#include "collage/onnx/fold.h"
#include "collage/onnx/graph.h"
#include "collage/onnx/graph_reader.h"
#include "collage/onnx/one_line.h"

namespace collage {
namespace {

using onnx_io::GraphReader;
using onnx_io::OnnxGraph;
using onnx_io::OnnxInput;

Result<Remainder::Output> OutputOf(const OnnxInput& declared) {
  const std::string place = "output '" + declared.name + "'";
  if (declared.is_sequence || declared.is_optional)
    return Fail(place + " is a sequence or an optional, and extents depend on data: how many tensors it has is not known");
  if (!declared.dtype) return Fail(place + " has no declared element type, and its extents depend on data");
  Remainder::Output output{declared.name, *declared.dtype, std::nullopt};
  if (!declared.shape) return output;
  output.shape.emplace();
  for (const onnx_io::OnnxDimension& dimension : *declared.shape) output.shape->push_back(dimension.extent.value_or(-1));
  return output;
}

/// The values of the inputs, as the graph names them.
Status DefineInputs(const std::vector<Remainder::Input>& inputs, std::span<const Tensor> tensors, GraphReader& reader) {
  size_t next = 0;
  for (const Remainder::Input& input : inputs) {
    if (next + input.length.value_or(1) > tensors.size()) return Fail("fewer values are given than the nodes read");
    if (!input.length) {
      COLLAGE_TRY_STATUS(reader.Define(input.name, MakeConstant(tensors[next++])));
      continue;
    }
    std::vector<Expr> elements;
    for (size_t i = 0; i < *input.length; ++i) elements.push_back(MakeConstant(tensors[next++]));
    COLLAGE_TRY_STATUS(reader.Define(input.name, MakeTuple(std::move(elements))));
  }
  return {};
}

Result<Tensor> CheckedOutput(const Expr& value, const Remainder::Output& output) {
  const Tensor* tensor = onnx_io::ConstantValue(value);
  if (tensor == nullptr) return Fail("output '" + output.name + "' is " + ToString(value->type()) + ", expected a tensor");
  if (tensor->dtype() == output.dtype) return *tensor;
  return Fail("output '" + output.name + "' is " + ToString(tensor->type()) + ", and the model declares " +
              std::string(Name(output.dtype)));
}

class NodesRemainder final : public Remainder {
 public:
  NodesRemainder(Parts parts, OnnxGraph graph, std::vector<Output> outputs)
      : Remainder(std::move(parts), std::move(outputs)), graph_(std::move(graph)) {}

  [[nodiscard]] size_t node_count() const override { return graph_.nodes.size(); }
  [[nodiscard]] Result<std::vector<Tensor>> Run(std::span<const Tensor> inputs, const RunRegion& run_region) const override;

 private:
  [[nodiscard]] Result<std::vector<Tensor>> Compute(std::span<const Tensor> inputs, const RunRegion& run_region) const;

  OnnxGraph graph_;
};

/// By its programs; false where these do not take what the region reads.
Result<bool> RunByPrograms(const Remainder::Region& region, const Remainder::RunRegion& run_region, GraphReader& reader) {
  std::vector<Tensor> inputs;
  for (const std::string& name : region.inputs) {
    const Expr value = reader.Find(name);
    const Tensor* tensor = value ? onnx_io::ConstantValue(value) : nullptr;
    if (tensor == nullptr) return false;
    inputs.push_back(*tensor);
  }
  const std::optional<std::vector<Tensor>> outputs = COLLAGE_TRY(run_region(region, inputs));
  if (!outputs) return false;
  for (size_t i = 0; i < region.outputs.size(); ++i) COLLAGE_TRY_STATUS(reader.Define(region.outputs[i], MakeConstant((*outputs)[i])));
  for (size_t node = region.begin; node < region.end; ++node) reader.ForgetBehind(node);
  return true;
}

Status ComputeNodes(const std::vector<Remainder::Region>& regions, const Remainder::RunRegion& run_region, size_t count,
                    GraphReader& reader) {
  auto next = regions.begin();
  for (size_t node = 0; node < count;) {
    if (next != regions.end() && next->begin == node) {
      const Remainder::Region& region = *next++;
      if (run_region && !region.programs.empty() && COLLAGE_TRY(RunByPrograms(region, run_region, reader))) {
        node = region.end;
        continue;
      }
    }
    COLLAGE_TRY_STATUS(reader.ComputeNode(node++));
  }
  return {};
}

/// What a file says of regions must hold for the nodes.
Status CheckRegions(const std::vector<Remainder::Region>& regions, size_t nodes) {
  size_t end = 0;
  for (const Remainder::Region& region : regions) {
    const bool fits =
        region.begin >= end && region.begin < region.end && region.end <= nodes && region.inputs.size() == region.has_rows.size();
    if (!fits) return Fail("a region of rows is not of its nodes");
    end = region.end;
  }
  return {};
}

Result<std::vector<Tensor>> NodesRemainder::Compute(std::span<const Tensor> inputs, const RunRegion& run_region) const {
  try {
    onnx_io::ModelReading reading;
    GraphReader reader(graph_, reading, nullptr, onnx_io::UnknownValues::kComputed);
    COLLAGE_TRY_STATUS(reader.DefineInitializers());
    COLLAGE_TRY_STATUS(DefineInputs(parts().inputs, inputs, reader));
    COLLAGE_TRY_STATUS(ComputeNodes(parts().regions, run_region, graph_.nodes.size(), reader));
    const std::vector<Expr> values = COLLAGE_TRY(reader.Outputs());
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < values.size(); ++i) outputs.push_back(COLLAGE_TRY(CheckedOutput(values[i], this->outputs()[i])));
    return outputs;
  } catch (const std::bad_alloc&) {
    return Fail("what depends on data needs more memory than there is");
  }
}

Result<std::vector<Tensor>> NodesRemainder::Run(std::span<const Tensor> inputs, const RunRegion& run_region) const {
  Result<std::vector<Tensor>> outputs = Compute(inputs, run_region);
  if (!outputs) return Fail(onnx_io::InOneLine(outputs.error()));
  return outputs;
}

}  // namespace

Result<std::shared_ptr<const Remainder>> CreateRemainder(Remainder::Parts parts) {
  OnnxGraph graph = COLLAGE_TRY(onnx_io::ParseOnnxGraph({parts.message, nullptr}, {}));
  COLLAGE_TRY_STATUS(CheckRegions(parts.regions, graph.nodes.size()));
  std::vector<Remainder::Output> outputs;
  for (const OnnxInput& declared : graph.output_types) outputs.push_back(COLLAGE_TRY(OutputOf(declared)));
  graph.initializers = parts.weights;
  return std::make_shared<const NodesRemainder>(std::move(parts), std::move(graph), std::move(outputs));
}

}  // namespace collage

extern "C" collage::Result<std::shared_ptr<const collage::Remainder>> collage_create_remainder(collage::Remainder::Parts parts) {
  return collage::CreateRemainder(std::move(parts));
}
