#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collage/support/result.h"

namespace collage::onnx_message {
class FunctionProto;
class ModelProto;
class NodeProto;
}  // namespace collage::onnx_message

namespace collage::onnx_io {

/// The functions that a model defines (FunctionProto), and what stands for their calls: the nodes of the body with the names and
/// attributes of the call. Calls are expanded before anything is known of operators, so nothing behind has to know functions.
class FunctionCalls {
 public:
  /// `model` must outlive this.
  explicit FunctionCalls(const onnx_message::ModelProto& model);

  [[nodiscard]] bool IsCall(const onnx_message::NodeProto& node) const { return Find(node) != nullptr; }

  /// A node and the version of the default operator set that it is written for.
  struct Expanded {
    std::shared_ptr<const onnx_message::NodeProto> node;
    int64_t opset;
  };

  /// The nodes that a call stands for, with calls inside of them expanded in turn. An error where functions
  /// call each other in a circle or make a model out of all proportion.
  Result<std::vector<Expanded>> Expand(const onnx_message::NodeProto& call, int64_t opset);

 private:
  [[nodiscard]] const onnx_message::FunctionProto* Find(const onnx_message::NodeProto& node) const;

  std::map<std::pair<std::string, std::string>, const onnx_message::FunctionProto*> functions_;
  size_t calls_ = 0;
  size_t nodes_ = 0;
};

}  // namespace collage::onnx_io
