#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collage/runtime/device_context.h"
#include "collage/support/result.h"
#include "collage/tensor/layout.h"
#include "collage/tensor/tensor_type.h"

namespace collage {

/// One tensor that enters or leaves a kernel, in the physical layout in which the kernel wants or gives it.
struct Port {
  TensorType type;
  Layout layout;
};

/// Compiled code for one partition with its weights packed: built once, run many times, by one thread at a time (it may use
/// the device's threads inside). Nothing is allocated in Run after the first call.
class Kernel {
 public:
  virtual ~Kernel() = default;

  /// Tensors that must be given, in the order of the function's parameters (tuple parameters flattened).
  [[nodiscard]] const std::vector<Port>& inputs() const { return inputs_; }
  /// Tensors that are written, in the order of the function's results (tuple results flattened).
  [[nodiscard]] const std::vector<Port>& outputs() const { return outputs_; }
  /// Scratch memory that Run needs, 64-byte aligned, its content lost between runs.
  [[nodiscard]] size_t workspace_bytes() const { return workspace_bytes_; }
  /// Set when output 0 is computed by accumulating into that input (a sum post-operation): the caller must pass one buffer as
  /// both, having copied the input first if it is still needed afterwards.
  [[nodiscard]] std::optional<size_t> accumulated_input() const { return accumulated_input_; }

  /// The device on which it runs, of which are all addresses that Run gets; null: the host's own memory.
  [[nodiscard]] const std::shared_ptr<DeviceContext>& context() const { return context_; }

  /// Pointers in port order, 64-byte aligned, to PhysicalByteCount bytes each; no two overlap but those named above. With a context it
  /// gives the work to the device's stream and does not wait for it; from its second run on that may be recorded (RecordWork).
  virtual Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) = 0;

  /// Another kernel of the same function for another thread to run at the same time, which shares code and packed weights with this one;
  /// null where each has to be compiled. May be called while this one runs.
  [[nodiscard]] virtual std::unique_ptr<Kernel> Twin() const { return nullptr; }

  /// Self-contained machine code or library blob from which the backend's Load makes this kernel again; empty when the kernel
  /// is made again by compiling its function.
  [[nodiscard]] virtual std::string Serialize() const { return {}; }

 protected:
  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
  size_t workspace_bytes_ = 0;
  std::optional<size_t> accumulated_input_;
  std::shared_ptr<DeviceContext> context_;
};

}  // namespace collage
