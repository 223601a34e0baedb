#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collage/ir/attributes.h"
#include "collage/ir/type.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// Fusion kinds, in Relay's order; the kind of a sub-graph is the largest kind inside it.
enum class OpKind : uint8_t { kElementwise, kBroadcast, kInjective, kCommReduce, kOutElementwiseFusable, kTuple, kOpaque };

/// "elementwise", "broadcast", "injective", "comm-reduce", "out-elementwise-fusable", "tuple", "opaque".
std::string_view Name(OpKind kind);

/// Floating point operations and bytes that must at least be moved (inputs read once, outputs written once).
struct Work {
  double flops = 0;
  double bytes = 0;
};

/// One attribute that an operator takes. `form` is for documentation and checking: "int", "float", "bool", "string",
/// "ints", "list" (nested). An attribute without `required` may be absent or None.
struct AttributeSpec {
  std::string name;
  std::string form;
  std::string meaning;
  bool required = false;
};

/// Where an argument or a result lies beside the call that reads or makes it: with it, on the host, or anywhere.
enum class DeviceUse : uint8_t { kSame, kHost, kAny };

/// What Relay says an operator is, as one record; the table of them is a value (op/table.h), this folder knows none.
struct OpDef {
  /// Result type from argument types (one entry an argument, tuples unflattened), or the constraint that is broken.
  using TypeRule = std::function<Result<Type>(std::span<const Type> arguments, const Attributes&)>;
  /// Work of one call with checked types.
  using WorkRule = std::function<Work(std::span<const Type> arguments, const Type& result, const Attributes&)>;
  /// Computes `outputs` (allocated, of the inferred types) from `inputs`. Tuple arguments and results are flattened. Types
  /// have been checked. Plain, accurate C++: the truth that every backend is compared with.
  using ReferenceKernel = std::function<void(std::span<const Tensor> inputs, const Attributes&, std::span<Tensor> outputs)>;

  std::string name;
  std::string summary;
  std::vector<std::string> argument_names;  ///< one an argument
  std::vector<AttributeSpec> attributes;
  OpKind kind = OpKind::kOpaque;
  bool commutative = false;
  /// The output is the input's elements in the same row-major order: a host may do it without a kernel (reshape, squeeze).
  bool is_view = false;
  /// Every element of the result lies between the least and the greatest of all its arguments: it chooses, moves or averages them.
  bool is_within_arguments = false;
  /// Its value is its argument's, of whatever type, functions included (on_device, device_copy).
  bool is_identity = false;
  /// One for each argument; an argument without an entry lies with the call, and so does the result unless stated.
  std::vector<DeviceUse> argument_devices = {};
  DeviceUse result_device = DeviceUse::kSame;
  /// The result tells of the extents of its arguments, not of their elements.
  bool makes_shape_value = false;
  TypeRule infer_type;
  WorkRule work;
  ReferenceKernel reference;
};

/// Operators by name. Records are never removed, so pointers to them stay valid as long as the table.
class OpTable {
 public:
  /// The name must be new.
  void Add(OpDef op);
  /// Null when unknown.
  [[nodiscard]] const OpDef* Find(std::string_view name) const;
  /// In the order of addition.
  [[nodiscard]] const std::vector<std::unique_ptr<const OpDef>>& records() const { return records_; }

 private:
  std::vector<std::unique_ptr<const OpDef>> records_;
  std::unordered_map<std::string_view, const OpDef*> by_name_;
};

}  // namespace collage
