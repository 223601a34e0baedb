#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collage/ir/op_sequence.h"
#include "collage/onnx/attribute.h"
#include "collage/onnx/writer.h"
#include "collage/support/name_supply.h"

namespace collage::onnx_io {

/// Collects the nodes and initializers of an ONNX graph that computes an operator sequence, and serializes them.
class GraphWriter {
 public:
  GraphWriter(OpSequence sequence, const WriteOptions& options);
  ~GraphWriter();

  /// Emits the nodes of every step, then the message.
  Result<std::string> Write();

 private:
  friend class NodeWriter;
  struct Message;  // the generated classes stay in the .cc

  Status CheckNames() const;
  Status CheckTypes() const;
  void CountUses();
  void NameBoundary();
  Status WriteSteps();
  void WriteResults();
  std::string NameOf(size_t value);
  std::string AddInitializer(const Tensor& value, const std::string& hint);
  void AddNode(const std::string& op_type, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
               const OnnxAttributes& attributes);
  Result<std::string> Serialize();

  OpSequence sequence_;
  WriteOptions options_;
  NameSupply names_;
  std::vector<std::string> value_names_;  // empty: not named yet
  std::vector<size_t> use_counts_;
  std::vector<size_t> last_user_;  // step that used a value last
  std::vector<bool> is_result_;
  std::vector<bool> absorbed_;  // steps that an earlier step has taken over
  std::vector<std::pair<std::string, Tensor>> initializers_;
  std::unique_ptr<Message> message_;
};

}  // namespace collage::onnx_io
