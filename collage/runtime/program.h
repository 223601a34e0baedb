#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collage/runtime/kernel.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// What a kernel stands for, for plans and profiles; nothing is computed from it.
struct KernelRecord {
  std::string name;                    ///< the global_symbol of its function
  std::string backend;                 ///< compiler name
  std::string backend_version;         ///< of the library behind it
  std::string variant;                 ///< of the backend
  std::vector<std::string> operators;  ///< names of the operators inside, in evaluation order
  std::vector<std::string> nodes;      ///< ONNX nodes that it computes, in the model's order; empty where no model was read
  std::string device = {};             ///< "opencl:0", "cpu:1 -processors=2-3"; empty: the host
};

/// The device that a record names. Errors on a name that is none.
Result<Device> DeviceOf(const KernelRecord& record, const Device& host);

/// For messages: "kernel 'collage_dnnl_2' (conv1, bn1) of backend 'dnnl'".
std::string ToString(const KernelRecord& record);

/// An input or output of a model.
struct Endpoint {
  std::string name;
  size_t value = 0;
};

/// A straight-line program over logical tensors: kernels in the order in which they run, before layouts are matched and memory
/// is planned. A value is an input, a constant, the output of exactly one call, or made of earlier values without a call: a view of one,
/// a slice of one, or a join of several.
struct Program {
  /// The elements from `begin` along an axis of another value, where that has them in memory.
  struct Slice {
    size_t of = 0;
    size_t axis = 0;
    int64_t begin = 0;
    Layout layout = {};  ///< in which they lie one after another (SliceOffset)
  };
  /// Other values one after another along an axis. Who computes them writes into the join's memory; what cannot lie there is copied.
  struct Join {
    std::vector<size_t> parts;
    size_t axis = 0;
    Layout layout = {};
  };
  struct Value {
    TensorType type;
    /// The same elements in row-major order under another shape; of a value with a smaller index.
    std::optional<size_t> view_of = std::nullopt;
    Tensor constant = {};  ///< defined for a constant
    std::optional<Slice> slice = std::nullopt;
    std::optional<Join> join = std::nullopt;

    /// The values that it is made of without a call; their indices are smaller.
    [[nodiscard]] std::vector<size_t> Sources() const;
  };
  struct KernelCall {
    KernelRecord record;
    std::shared_ptr<Kernel> kernel;  ///< may be one of other calls too, also of programs that never run at the same time
    std::vector<size_t> inputs;      ///< values, one a port
    std::vector<size_t> outputs;     ///< values, one a port
  };

  std::vector<Value> values;
  std::vector<KernelCall> calls;
  std::vector<Endpoint> inputs;
  std::vector<Endpoint> outputs;
};

/// Errors when an index is out of range, a value is used before it is defined or defined twice, types disagree with ports, or tensors are
/// larger than can be addressed.
Status CheckProgram(const Program& program);

}  // namespace collage
