#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "collage/backend/backend.h"
#include "collage/backend/partition_program.h"
#include "collage/ir/module.h"
#include "collage/op/remainder.h"
#include "collage/runtime/device.h"
#include "collage/runtime/executable.h"
#include "collage/runtime/processors.h"
#include "collage/support/progress.h"

namespace collage {

/// The backend of a compiler name that runs on a device, or an error that says which there are (FindBackend of backend/registry.h, or a
/// test's own).
using BackendLookup = std::function<Result<const Backend*>(const std::string& name, const Device& device)>;

/// Kernels built before, by a hash of function, weights and variant: whoever lowers many plans of one model compiles each kernel once.
/// Plans that are there at the same time have twins of it (Kernel::Twin), which share packed weights, where its backend makes such.
struct KernelCache {
  struct Known {
    std::weak_ptr<Kernel> kernel;
    size_t weights = 0;  ///< bytes of its function's constants
  };
  std::unordered_map<uint64_t, Known> kernels;
  std::vector<Known> others;                            ///< equal to one of these, of backends that make no twins
  std::unordered_map<uint64_t, std::string> artifacts;  ///< machine code of those that are gone
  struct Compiled {
    size_t kernels = 0;
    double seconds = 0;
  };
  std::unordered_map<std::string, Compiled> compiled;  ///< what compiling has taken, by backend
  /// How many bytes of weights the kernels that are there at the same time should be of, with the largest counted twice while it is made:
  /// compilers of whole models need about as much again. Whoever lowers several plans asks HasRoom and lets others go.
  size_t most_weights = std::numeric_limits<size_t>::max();

  [[nodiscard]] bool is_limited() const { return most_weights != std::numeric_limits<size_t>::max(); }
  /// What a kernel of a backend has taken to compile, at the mean; nothing where none was compiled.
  [[nodiscard]] std::optional<double> SecondsToCompile(const std::string& backend) const;
  /// Bytes of weights of the kernels that are there.
  [[nodiscard]] size_t Weights() const;
  /// For kernels of so many bytes of weights that are not there yet.
  [[nodiscard]] bool HasRoom(size_t more) const { return more <= most_weights && Weights() <= most_weights - more; }
};

struct BuildOptions {
  Device device;  ///< the host; kernels whose records name another one are compiled for that
  BackendLookup find_backend;
  Progress progress;
  std::shared_ptr<KernelCache> kernels;  ///< may be null
  /// For CPUs beside the host of a program that is loaded: in place of the processors with which it was saved.
  std::vector<CpuStatement> cpus = {};

  [[nodiscard]] bool is_limited() const { return kernels && kernels->is_limited(); }
  [[nodiscard]] bool HasRoom(size_t more) const { return !kernels || kernels->HasRoom(more); }
};

struct LowerOptions : BuildOptions {
  PartitionProgramOptions program;
};

/// A program ready to run, and what it was built from (which saving needs).
struct LoweredModel {
  PartitionProgram program;  ///< with blocks: inputs and outputs only, of the first profile
  Executable executable;
  ControlProgram control = {};                ///< has no functions where the program is one block itself
  std::vector<PartitionProgram> blocks = {};  ///< of the executable's blocks
  /// What runs behind each shape profile of the executable, on what that gives.
  Remainders remainders = {};
};

/// What lies behind an executable, on what that has given: regions of rows on its blocks, all else on the reference kernels, whose products
/// and convolutions share the executable's threads.
Result<std::vector<Tensor>> RunRemainder(Executable& executable, const Remainder& remainder, std::span<const Tensor> values);

/// Runs a whole program: the profile of the executable that takes these inputs, and what lies behind it. Into new tensors, since a
/// remainder gives tensors of any extents.
Result<std::vector<Tensor>> RunWhole(Executable& executable, const Remainders& remainders, std::span<const Tensor> inputs);

/// Compiles one partition, in the variant that its record names, or else the backend's first (the record is completed).
Result<std::unique_ptr<Kernel>> CompilePartition(PartitionCall& call, const Backend& backend, const Device& device);

/// Compiles every partition with its backend in its variant (the backend's first where none is named), and plans layouts and
/// memory. The records of the calls are completed: variant, version of the backend. Reports the stage "compile" before each
/// partition. Errors name the partition.
Result<LoweredModel> BuildExecutable(PartitionProgram program, const BuildOptions& options);

/// For KernelCache::HasRoom: what lowering a partitioned module would add to the kernels of the cache that `options` have. Errors of
/// ToPartitionProgram.
Result<size_t> WeightsToAdd(const IRModule& partitioned, const LowerOptions& options);

/// A partitioned module, ready to run: ToPartitionProgram, then BuildExecutable.
Result<LoweredModel> Lower(const IRModule& partitioned, const LowerOptions& options);

}  // namespace collage
