#pragma once

// A plan as an ONNX model that any tool opens and runs: each partition is a call of a function of the model. What a partition computes is
// then in the file, and who should run it is a remark beside it.
//
// Control flow is written as ONNX has it. A branch is an If. A function that calls itself as the last thing it does is a Loop:
//
//   def @loop(%go_on, %state, %weight) { if (%go_on) { @loop(.., .., %weight) } else { %state } }
//
// has the condition %go_on and carries %state; %weight is read from outside. Where a condition is computed on the way or a result is no
// parameter, an iteration computes both, and the Loop carries results that hold zeros until there are any. Functions that call each other
// at their ends are one Loop, too; a number says whose turn it is. A function stands where it is called, or is one of the model where it is
// called at several places, so that the file grows with the program and not with its paths.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/op/remainder.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// The domain of the functions.
inline constexpr const char* kPartitionDomain = "collage";

/// Straight-line code, in the order in which it runs.
struct PartitionedBlock {
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
  std::vector<Value> values;
  std::vector<Call> calls;
  std::vector<size_t> inputs;   ///< values
  std::vector<size_t> outputs;  ///< values
};

/// What is written: functions over blocks, as ControlProgram (runtime/control_program.h) has them, which says what must hold.
struct PartitionedModel {
  /// Where the nodes of partitions stand.
  enum class Nodes {
    kInFunctions,  ///< each partition is a call
    kInPlace,      ///< in place of the call, each with its remarks
  };
  struct Step {
    enum class Kind { kBlock, kCall, kBranch };
    Kind kind = Kind::kBlock;
    size_t callee = 0;  ///< block or function; of a branch the one taken where the condition holds
    std::vector<size_t> inputs;
    std::vector<size_t> outputs;
    size_t condition = 0;  ///< of a branch
    size_t otherwise = 0;  ///< of a branch: the function taken where the condition does not hold
    std::vector<size_t> otherwise_inputs = {};
  };
  struct Function {
    std::string name;
    std::vector<TensorType> types;  ///< one a tensor, parameters first
    size_t parameters = 0;
    std::vector<std::pair<size_t, Tensor>> constants;
    std::vector<Step> steps;
    std::vector<size_t> results;
  };
  std::vector<PartitionedBlock> blocks;
  std::vector<Function> functions;
  size_t entry = 0;                       ///< the function that is the model
  std::vector<std::string> input_names;   ///< of its parameters
  std::vector<std::string> output_names;  ///< of its results; with a remainder, that has the names
  /// Nodes behind the results, which are its inputs. They are brought to the operator set of the functions, or these to its.
  std::optional<Remainder::Parts> remainder = std::nullopt;
  Nodes nodes = Nodes::kInFunctions;
};

struct PartitionedForm {
  std::string bytes;
  size_t partitions = 0;  ///< calls of partitions
  size_t functions = 0;   ///< of the model; calls of partitions that compute the same share one
};

/// Writes the model. Functions take their constants behind their parameters, so that partitions which differ in weights only share one;
/// equal weights are stored once. Errors name the call: what WriteOnnx cannot write, and values that are used before they are there. They
/// name the function that goes on computing behind a call of itself, and the remainder's node that the written operator set lacks.
Result<PartitionedForm> WritePartitioned(const PartitionedModel& model);

}  // namespace collage
