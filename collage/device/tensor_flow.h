#pragma once

// What device planning knows of a module before it decides anything: which tensors there are, which expressions hold which of
// them, what is stated, where values cross, and who uses what.

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "collage/device/configuration.h"
#include "collage/device/tensor_classes.h"
#include "collage/ir/module.h"

namespace collage {

/// What an operator's record says of devices, in place of that record.
struct DeviceRecord {
  std::vector<DeviceUse> arguments;
  DeviceUse result = DeviceUse::kSame;
};
using DeviceRecords = std::unordered_map<std::string, DeviceRecord>;

/// One tensor of an expression.
struct TensorLeaf {
  static constexpr uint32_t kNoMaker = static_cast<uint32_t>(-1);
  uint32_t tensor = 0;        ///< in the classes
  uint32_t maker = kNoMaker;  ///< who makes it, in TensorFlow::makers; nobody for what a function takes or gives
  uint32_t field = 0;         ///< which tensor of its maker
};

/// What makes tensors: a parameter, a constant, a call or an if.
struct TensorMaker {
  Expr expr;
  size_t function;           ///< of the module
  bool is_constant = false;  ///< loaded wherever it is used
  bool is_shape = false;     ///< its tensors are shape values
};

/// Somebody says that a tensor lies somewhere.
struct DeviceStatement {
  VirtualDevice device;   ///< as stated
  Expr by;                ///< a parameter, a call, or a function for its result
  size_t function;        ///< of the module
  std::string text = {};  ///< how it is shown where that is no device
};

/// Somebody reads a tensor somewhere.
struct TensorUse {
  static constexpr uint32_t kOnHost = static_cast<uint32_t>(-1);
  uint32_t maker;
  uint32_t field;
  uint32_t place;  ///< a tensor where it is read, or kOnHost
  Expr user;       ///< a call, an if, or a function for its result
  uint32_t part;   ///< the argument; of an if: condition, then, else
  uint32_t leaf;   ///< which tensor of that
  size_t function;
};

class TensorFlow {
 public:
  /// Reads the functions of a verified module. Errors on devices that cannot be read.
  static Result<TensorFlow> Read(const IRModule& module, const DeviceConfiguration& configuration, const DeviceRecords& records);

  /// The tensors of an expression of the module that is no operator; of a function, parameters before results.
  [[nodiscard]] std::span<const TensorLeaf> Of(const ExprNode* expr) const;
  /// What a function gives.
  [[nodiscard]] std::span<const TensorLeaf> ResultOf(const ExprNode* function) const;
  /// Every expression of a function of the module, children first, in the order of evaluation; kernels are not looked into.
  [[nodiscard]] const std::vector<Expr>& Order(size_t function) const { return orders_[function]; }
  /// The kernel (a Primitive or Composite function) that a call runs, or null.
  [[nodiscard]] Expr KernelOf(const Expr& callee) const;
  /// Parameters and results of the kernel of this call, as it runs there.
  [[nodiscard]] std::span<const TensorLeaf> KernelCall(const ExprNode* call) const;
  [[nodiscard]] DeviceRecord RecordOf(const OpDef& op) const;

  // Data for the planner, in the order of the program.
  TensorClasses classes;
  std::vector<TensorMaker> makers;
  std::vector<DeviceStatement> statements;
  struct Stated {
    uint32_t tensor;
    uint32_t statement;
  };
  std::vector<Stated> stated;
  struct Pair {
    uint32_t a;
    uint32_t b;
  };
  std::vector<Pair> crossings;         ///< in the order in which they are joined
  std::vector<Pair> branch_crossings;  ///< joined after all others
  std::vector<uint32_t> read_by_host;
  std::vector<TensorUse> uses;
  std::vector<Expr> device_copies;
  std::vector<DeviceStatement> unknown_compilers;

 private:
  friend class TensorFlowReader;
  struct Range {
    uint32_t first = 0;
    uint32_t count = 0;
  };
  [[nodiscard]] std::span<const TensorLeaf> Leaves(Range range) const { return {leaves_.data() + range.first, range.count}; }

  const IRModule* module_ = nullptr;
  const DeviceRecords* records_ = nullptr;
  std::vector<TensorLeaf> leaves_;
  std::unordered_map<const ExprNode*, Range> ranges_;
  std::unordered_map<const ExprNode*, Range> results_;
  std::unordered_map<const ExprNode*, Range> kernel_calls_;
  std::unordered_map<const ExprNode*, Expr> let_values_;
  std::vector<std::vector<Expr>> orders_;
};

/// The tensors of a type in order, those of functions included.
struct TypeLeaf {
  const TensorType* type;
  bool in_function;
};
std::vector<TypeLeaf> TypeLeaves(const Type& type);

}  // namespace collage
