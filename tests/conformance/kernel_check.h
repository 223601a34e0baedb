#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "collage/runtime/kernel.h"
#include "collage/tensor/agreement.h"
#include "collage/tensor/tensor.h"

namespace collage::conformance {

/// Memory with guard bytes on both sides, 64-byte aligned.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t bytes);
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] size_t size() const { return bytes_; }
  /// False once something has been written outside.
  [[nodiscard]] bool GuardsIntact() const;
  /// With the guards.
  [[nodiscard]] std::byte* whole() const;
  [[nodiscard]] size_t whole_bytes() const;
  [[nodiscard]] static size_t guard_bytes();

 private:
  size_t bytes_;
  std::unique_ptr<std::byte[]> memory_;
  std::byte* data_;
};

/// Runs one kernel on buffers of its own and watches what it writes.
class KernelRunner {
 public:
  KernelRunner(std::unique_ptr<Kernel> kernel, int threads);

  /// Differences from what a kernel of these ports must do, empty when there are none: results that agree
  /// with `expected` (Passes, by `tolerance` and by `steps` as Compare has them), nothing written outside of the output buffers and nothing
  /// into inputs (but the accumulated one), padding of blocked layouts zero.
  std::string Check(const std::vector<Tensor>& inputs, const std::vector<Tensor>& expected, const std::vector<double>& steps = {},
                    double tolerance = kTolerance);

  /// From now on at other addresses.
  void ChangeBuffers();

  [[nodiscard]] const Kernel& kernel() const { return *kernel_; }

 private:
  std::string CheckPorts(const std::vector<Tensor>& inputs, const std::vector<Tensor>& expected) const;
  void WriteInputs(const std::vector<Tensor>& inputs);
  Status Run();
  /// On copies of the buffers, guards included, which are copied back.
  Status RunOnDevice();
  [[nodiscard]] std::string CheckWrites() const;
  [[nodiscard]] std::string CheckOutput(size_t index, const Tensor& expected, double step, double tolerance) const;

  std::unique_ptr<Kernel> kernel_;
  int threads_;
  std::vector<GuardedBuffer> inputs_;
  std::vector<GuardedBuffer> outputs_;
  GuardedBuffer workspace_;
  std::vector<std::vector<std::byte>> input_copies_;
  std::vector<const void*> input_pointers_;
  std::vector<void*> output_pointers_;
};

}  // namespace collage::conformance
