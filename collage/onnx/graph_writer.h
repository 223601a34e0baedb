#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "collage/ir/op_sequence.h"
#include "collage/onnx/attribute.h"
#include "collage/onnx/model_bytes.h"
#include "collage/onnx/writer.h"
#include "collage/support/name_supply.h"

namespace collage::onnx_message {
class FunctionProto;
}  // namespace collage::onnx_message

namespace collage::onnx_io {

/// Collects the nodes and initializers of an ONNX graph that computes an operator sequence, and serializes them.
class GraphWriter {
 public:
  GraphWriter(OpSequence sequence, const WriteOptions& options);
  ~GraphWriter();

  /// Emits the nodes of every step, then the message.
  Result<std::string> Write();
  /// The same as a function of a model, which has no name yet. Behind the parameters it takes the constants of the sequence, which go to
  /// `weights` by the names of these inputs; what only describes an operator stays inside, where readers of shapes look for it.
  Status WriteFunction(onnx_message::FunctionProto& function, std::vector<NamedTensor>& weights);

 private:
  friend class NodeWriter;
  struct Message;  // the generated classes stay in the .cc

  Status WriteNodes();
  Status CheckNames() const;
  Status CheckTypes() const;
  void CountUses();
  void NameBoundary();
  Status WriteSteps();
  void WriteResults();
  /// Nodes whose results nobody reads: a later one was written without them.
  void DropUnread();
  std::string NameOf(size_t value);
  std::string AddTensor(const Tensor& value, std::vector<NamedTensor>& tensors);
  /// "com.microsoft.MatMulNBits" is of another domain than the default one.
  void AddNode(const std::string& op_type, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
               const OnnxAttributes& attributes);
  /// Of the domains of the nodes.
  template <class Proto>
  void AddImports(Proto& message) const;
  Result<std::string> Serialize();

  OpSequence sequence_;
  WriteOptions options_;
  NameSupply names_;
  std::vector<std::string> value_names_;  // empty: not named yet
  std::vector<size_t> use_counts_;
  std::vector<size_t> last_user_;  // step that used a value last
  std::vector<size_t> producer_;   // step that gives a value; kNoStep: none
  static constexpr size_t kNoStep = static_cast<size_t>(-1);
  std::vector<bool> is_result_;
  std::vector<bool> absorbed_;             // steps that an earlier step has taken over
  std::vector<NamedTensor> weights_;       // constants of the sequence
  std::vector<NamedTensor> descriptions_;  // what the operators of ONNX take as tensors and ours as attributes
  std::set<std::string> domains_;          // of nodes, but the default one
  std::unique_ptr<Message> message_;
};

}  // namespace collage::onnx_io
