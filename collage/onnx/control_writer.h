#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collage/onnx/control_graph.h"
#include "collage/onnx/loop_form.h"
#include "collage/onnx/partition_writer.h"

namespace collage::onnx_io {

/// Writes functions over blocks as nodes. How deep it recurses is bounded by how deep graphs lie in graphs (ControlGraph).
class ControlWriter {
 public:
  ControlWriter(const PartitionedModel& model, const ControlGraph& graph, PartitionWriter& parts)
      : model_(model), graph_(graph), parts_(parts) {}

  /// The functions that are some of the model's (ControlGraph::IsShared), each before those that call it.
  Status WriteSharedFunctions();
  /// Where a function is called with values of these names: the names of what it gives, which are those of `wanted` where they can be.
  /// Errors are those of PartitionWriter::WriteBlock.
  Result<std::vector<std::string>> WriteCall(size_t function, std::vector<std::string> inputs, const std::vector<std::string>& wanted,
                                             GraphScope& scope);

 private:
  using Names = std::vector<std::string>;
  using Types = std::vector<TensorType>;

  /// A function where it is written into the place of a call.
  struct Frame {
    size_t function;
    Names names;                                          ///< of its tensors
    std::unordered_map<size_t, std::string> wanted = {};  ///< names that some should have
    size_t next = 0;                                      ///< step
  };
  /// One side of an If.
  struct Side {
    GraphScope& scope;
    Names results;
  };
  /// While the body of a Loop is written. What an iteration hands on to the next: whether there is one, whose turn it is where there are
  /// several headers, the states, and the results that are carried for themselves.
  struct Body {
    const LoopForm& form;
    Types types;      ///< of what is handed on
    Names inputs;     ///< its names where the iteration begins
    Names arguments;  ///< of the call that enters

    [[nodiscard]] size_t FirstState() const { return form.headers.size() > 1 ? 2 : 1; }
  };
  /// The same for its node, which has the condition by itself.
  struct Carried {
    Names first;   ///< before the first iteration
    Names next;    ///< behind one: whether to go on, then these
    Types types;   ///< of these
    Names wanted;  ///< names that the node's outputs should have, or ""
  };
  struct SharedFunction {
    std::string name;
    Names weights;  ///< which it takes behind its parameters
  };

  Status WriteSharedFunction(size_t function);
  /// As WriteCall, of a function that may be some of the model's: what it does.
  Result<Names> WriteInPlace(size_t function, Names inputs, const Names& wanted, GraphScope& scope);
  Names CallShared(size_t function, Names inputs, const Names& wanted, GraphScope& scope);

  Frame Enter(size_t function, Names inputs);
  /// The steps of a frame up to `end`, with those of functions that stand in the place of their call.
  Status WriteSteps(Frame& frame, size_t end, GraphScope& scope);
  /// A step that is no such call; the names of what it gives.
  Result<Names> WriteStep(const PartitionedModel::Step& step, const Frame& frame, GraphScope& scope);
  Result<Names> WriteBlockStep(const PartitionedModel::Step& step, const Frame& frame, GraphScope& scope);
  Result<Names> WriteBranch(const PartitionedModel::Step& step, const Frame& frame, GraphScope& scope);
  /// What both sides pass on alike is no result of the node.
  Names AddIf(const std::string& condition, Side then_side, Side else_side, const Types& types, const Names& wanted, GraphScope& scope);

  Result<Names> WriteLoop(size_t function, const Names& inputs, const Names& wanted, GraphScope& scope);
  Result<Names> WriteNaturalLoop(const LoopForm& form, const Names& inputs, const Names& wanted, GraphScope& scope);
  /// What follows on one of the headers [begin, end), by the number of the one whose turn it is.
  Result<Names> WriteTurn(size_t begin, size_t end, const Body& body, GraphScope& scope);
  /// What a function of the circle hands on: its steps and what they lead to, up to the next header or an end.
  Result<Names> WritePath(size_t function, Names inputs, const Body& body, GraphScope& scope);
  Result<Names> WriteSideOfPath(size_t caller, size_t callee, Names inputs, const Body& body, GraphScope& scope);
  Names Again(size_t header, const Names& arguments, const Body& body);
  Names End(const Names& results, const Body& body);
  static Names ParametersOf(size_t header, const Body& body);
  Names AddLoop(const std::string& hint, const std::string& condition, const Carried& carried, GraphScope& body, GraphScope& scope);
  /// The inputs that each body has; the name of that of the condition.
  std::string OpenBody(onnx_message::GraphProto& graph);

  std::string Not(const std::string& name, GraphScope& scope);
  std::string Scalar(int64_t value, DType dtype);
  std::string Zeros(const TensorType& type, GraphScope& scope);
  Names Outputs(const std::string& hint, const Types& types, const Names& wanted, GraphScope& scope);

  const PartitionedModel& model_;
  const ControlGraph& graph_;
  PartitionWriter& parts_;
  std::unordered_map<size_t, SharedFunction> shared_;
  std::unordered_map<std::string, Tensor> constants_;  // small ones, so that each is stored once
};

}  // namespace collage::onnx_io
