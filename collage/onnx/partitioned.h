#pragma once

// A plan as an ONNX model that any tool opens and runs: each partition is a call of a function of the model. What a partition computes is
// then in the file, and who should run it is a remark beside it.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// The domain of the functions.
inline constexpr const char* kPartitionDomain = "collage";

/// What is written, in the order in which it runs.
struct PartitionedModel {
  /// Elements of earlier values that nothing computes.
  struct Moved {
    enum class Kind { kReshape, kSlice, kConcat };
    Kind kind = Kind::kReshape;
    std::vector<size_t> of;  ///< one value, or those that are joined
    int64_t axis = 0;        ///< kSlice, kConcat
    int64_t begin = 0;       ///< kSlice
  };
  /// An input, a constant, elements of earlier values or what one call gives.
  struct Value {
    TensorType type;
    std::optional<Moved> moved = std::nullopt;
    std::optional<Tensor> constant = std::nullopt;
  };
  struct Call {
    std::string name;             ///< of its node
    Expr function;                ///< straight-line, with its constants inside
    std::vector<size_t> inputs;   ///< values, parameters flattened
    std::vector<size_t> outputs;  ///< values, results flattened
    /// Keys and values for people and tools; nothing is computed from them (metadata_props of the node).
    std::vector<std::pair<std::string, std::string>> remarks;
  };
  struct Endpoint {
    std::string name;
    size_t value = 0;
  };
  std::vector<Value> values;
  std::vector<Call> calls;
  std::vector<Endpoint> inputs;
  std::vector<Endpoint> outputs;
};

struct PartitionedForm {
  std::string bytes;
  size_t functions = 0;  ///< calls that compute the same share one
};

/// Writes the model. Functions take their constants behind their parameters, so that partitions which differ in weights only share one;
/// equal weights are stored once. Errors name the call: what WriteOnnx cannot write, and values that are used before they are there.
Result<PartitionedForm> WritePartitioned(const PartitionedModel& model);

}  // namespace collage
