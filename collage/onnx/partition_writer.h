#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "collage/onnx/model_bytes.h"
#include "collage/onnx/partitioned.h"
#include "collage/onnx/writer.h"
#include "collage/support/name_supply.h"

namespace collage::onnx_message {
class FunctionProto;
class GraphProto;
class NodeProto;
}  // namespace collage::onnx_message

namespace collage::onnx_io {

/// A graph while its nodes are written.
struct GraphScope {
  onnx_message::GraphProto& graph;
  std::unordered_set<std::string> given = {};  ///< names of what its nodes give
};

/// The nodes of blocks, and what all graphs of one model share: names, functions and constants. A name is given once in the whole model,
/// since a graph in a node may have none of those around it.
class PartitionWriter {
 public:
  /// Names that were given to values elsewhere must be reserved before anything is written.
  PartitionWriter(const WriteOptions& options, PartitionedModel::Nodes nodes);
  ~PartitionWriter();

  NameSupply& names() { return names_; }
  [[nodiscard]] int64_t opset() const { return options_.opset; }

  /// Writes a block over values of these names; the names of what it gives. `wanted` holds the names that its values should have. Errors
  /// name the call.
  Result<std::vector<std::string>> WriteBlock(const PartitionedBlock& block, const std::vector<std::string>& inputs,
                                              const std::unordered_map<size_t, std::string>& wanted, GraphScope& scope);

  /// A node whose name is made from `hint`.
  onnx_message::NodeProto& AddNode(const std::string& op_type, const std::string& hint, const std::vector<std::string>& inputs,
                                   const std::vector<std::string>& outputs, GraphScope& scope);
  /// The name of a tensor in between, whose type is told for those who look.
  std::string AddTensor(const std::string& hint, const TensorType& type, GraphScope& scope);
  /// The name of a constant of the model. Equal ones are one: by place, type and shape, so what a file holds once is stored once.
  std::string AddWeight(const std::string& hint, const Tensor& value);
  /// A constant that has its name.
  void AddNamedWeight(const std::string& name, const Tensor& value);
  /// `names` as results of the graph: each given by a node of it, and none twice.
  std::vector<std::string> AsResults(std::vector<std::string> names, GraphScope& scope);

  /// Constants that were read since the last call of this. A function sees nothing of the model, so they are inputs of it.
  std::vector<std::string> TakeWeightsRead();
  void NoteWeightsRead(const std::vector<std::string>& names);
  /// Takes a function, and gives it a name like this one.
  std::string AddFunction(const std::string& hint, onnx_message::FunctionProto& function);

  [[nodiscard]] const std::vector<NamedTensor>& initializers() const { return initializers_; }
  [[nodiscard]] const std::set<std::string>& domains() const { return domains_; }
  [[nodiscard]] size_t partitions() const { return partitions_; }
  [[nodiscard]] const std::vector<onnx_message::FunctionProto>& functions() const { return functions_; }

 private:
  class BlockValues;

  Status WriteCall(const PartitionedBlock::Call& call, BlockValues& values, GraphScope& scope);
  /// Nodes of a function over values of these names, which are renamed in it.
  void AddNodesOf(onnx_message::FunctionProto& function, const PartitionedBlock::Call& call, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs, GraphScope& scope);
  static void AddRemarks(const PartitionedBlock::Call& call, onnx_message::NodeProto& node);
  void NoteDomains(const onnx_message::FunctionProto& function);

  WriteOptions options_;
  PartitionedModel::Nodes nodes_;
  NameSupply names_;
  NameSupply node_names_;
  NameSupply function_names_;
  std::unordered_map<std::string, std::string> partition_functions_;  // names by messages without names
  std::vector<onnx_message::FunctionProto> functions_;
  std::set<std::string> domains_;  // of the nodes in them, but the default one
  std::map<std::tuple<const std::byte*, DType, Shape>, std::string> weights_;
  std::vector<NamedTensor> initializers_;
  std::vector<std::string> weights_read_;
  std::unordered_set<std::string> is_read_;
  size_t partitions_ = 0;
};

}  // namespace collage::onnx_io
