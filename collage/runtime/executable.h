#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collage/runtime/control_program.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"
#include "collage/runtime/program.h"
#include "collage/runtime/shape_profile.h"
#include "collage/support/clock.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// Time spent in one step of an executable since profiling began.
struct StepProfile {
  std::string kind;     ///< "kernel", "conversion" (between layouts), "copy", "transfer" (between devices) or "wait" (for one)
  KernelRecord record;  ///< of a kernel; of the others only `name` is set: "plain -> aBcd16b of Tensor[(1, 64), float32]"
  Device device;        ///< on which it runs; of a transfer and a wait for an accelerator, that which is not the host
  uint64_t calls = 0;
  double microseconds = 0;
  Clock::time_point last_began = {};  ///< of the last call
  double last_microseconds = 0;
};

/// A program ready to run: kernels compiled, layouts matched, memory planned and touched, constants in the layouts in which they
/// are wanted. Run allocates nothing after the first call. One Run at a time: kernels share buffers and workspace, so a second
/// one meanwhile is refused; make one Executable for each thread that wants to run by itself.
class Executable {
 public:
  /// Errors when the program is inconsistent (see CheckProgram).
  static Result<Executable> Create(Program program, const Device& device);
  /// Control flow, or a choice among profiles, around blocks, each an executable of its own; `inputs` and `outputs` name those of every
  /// entry. Errors when the parts do not fit together (see CheckControlProgram). Run allocates while it meets more tensors at once than
  /// ever before.
  static Result<Executable> Create(ControlProgram control, std::vector<Executable> blocks, const std::vector<std::string>& inputs,
                                   const std::vector<std::string>& outputs, const Device& device);
  /// Makes a kernel again: of a block, by its number among blocks() (0 without control flow), and by its number among calls().
  using MakeKernel = std::function<Result<std::unique_ptr<Kernel>>(size_t block, size_t call)>;
  /// Another executable of the same program, for another thread to run at the same time. They share the plan, the constants and what
  /// kernels share (Kernel::Twin); of the other kernels `make_kernel` gives new ones. May be called while this one runs. Errors are those
  /// of `make_kernel`.
  [[nodiscard]] Result<Executable> Twin(const MakeKernel& make_kernel) const;
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;
  ~Executable();

  [[nodiscard]] const Device& device() const;
  /// One at least; Run takes the inputs of any of them.
  [[nodiscard]] const std::vector<ShapeProfile>& shape_profiles() const;
  /// Of the first shape profile.
  [[nodiscard]] const std::vector<NamedType>& inputs() const;
  [[nodiscard]] const std::vector<NamedType>& outputs() const;

  /// Computes into the caller's tensors, which must be writable, of the types of one shape profile and disjoint from each other and from
  /// the inputs. Inputs that are 64-byte aligned (all but views into foreign memory) are read where they are. Errors leave the outputs
  /// undefined and name the offending tensor or kernel, or the profiles that there are.
  Status Run(std::span<const Tensor> inputs, std::span<Tensor> outputs);
  /// As above, into new tensors.
  Result<std::vector<Tensor>> Run(std::span<const Tensor> inputs);

  /// One block by itself, which control flow need not run: as Run, with its inputs and outputs.
  Status RunBlock(size_t block, std::span<const Tensor> inputs, std::span<Tensor> outputs);

  /// Starts (from zero) or stops the measuring of single steps, which costs two clock readings a step. Steps of accelerators are waited
  /// for then, each by itself, so that their times are their own: nothing overlaps. Kernels on other CPUs run beside the host's as ever.
  void SetProfiling(bool on);
  /// One entry a step, in the order in which they run (of blocks, one after another); times are zero when profiling was never on.
  [[nodiscard]] const std::vector<StepProfile>& profile() const;

  /// From now on says in `now`, which must outlive it, which step runs: its number in the low 32 bits and above it what changes with every
  /// step; zero while a step of number zero or none runs. After a Run that failed or did not return it is the step at fault. One number
  /// for each entry of profile().
  void Watch(std::atomic<uint64_t>& now, std::vector<uint32_t> numbers);

  /// The kernels in the order in which they run, with the values of the program that they read and write. Those of blocks are theirs.
  [[nodiscard]] const std::vector<Program::KernelCall>& calls() const;
  /// Empty where it is one block itself.
  [[nodiscard]] const std::vector<Executable>& blocks() const;
  /// The same, taken out of it for another program.
  [[nodiscard]] std::vector<Executable> TakeBlocks() &&;

  /// Host memory shared by all intermediate tensors and the one workspace of all kernels, bytes; of blocks, the sum.
  [[nodiscard]] size_t arena_bytes() const;
  /// Of tensors that went between blocks so far, bytes; zero without control flow.
  [[nodiscard]] size_t held_bytes() const;

 private:
  struct State;
  explicit Executable(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace collage
