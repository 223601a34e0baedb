#pragma once

// What the code generator's shared object offers. It is opened on the first compilation only: Halide is a large library, and a
// program that runs saved kernels never needs it.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "collage/ir/op_sequence.h"
#include "collage/support/result.h"
#include "collage/tensor/layout.h"

namespace collage::native {

/// Of constants the code has those of one element. All others it reads from its arguments, so that one object is for all values of them.
struct GenerateRequest {
  const OpSequence* sequence = nullptr;
  int threads = 1;
  std::string schedule;               ///< name of the schedule, see variants.h
  std::map<std::string, int> tuning;  ///< what differs from the schedule's own numbers, see variants.h
  std::vector<Layout> inputs;         ///< one a parameter
  std::vector<Layout> outputs;        ///< one a result
};

/// Of a sequence that differs from the generated one in nothing but the elements of its constants.
using MakeConstant = std::function<Tensor(const OpSequence& sequence)>;

/// A relocatable ELF object whose function kEntryName takes, as an array of pointers, the address of a user context, then Halide buffers:
/// inputs, constants, outputs.
struct GeneratedCode {
  std::string object;
  std::vector<MakeConstant> constants;  ///< row-major
};
inline constexpr const char* kEntryName = "collage_native_kernel_argv";

/// Exported by the shared object under kGenerateSymbol. No exception leaves it.
using Generate = Result<GeneratedCode> (*)(const GenerateRequest&);
inline constexpr const char* kGenerateSymbol = "collage_native_generate";

}  // namespace collage::native
