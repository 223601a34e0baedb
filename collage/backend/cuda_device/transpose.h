#pragma once

#include <cuda.h>

#include <map>
#include <string>

#include "collage/runtime/transposition.h"
#include "collage/support/result.h"

namespace collage::cuda {

/// Whether there is a kernel for it: of elements of 1, 2, 4 and 8 bytes, in matrices of so many elements that 32 bits count them.
bool HasTransposeKernel(const Transposition& transposition);

/// The text of those kernels in PTX, the driver's own language: where layouts have to be converted there need be no compiler.
std::string TransposeSource();

/// Those kernels on one device. Its context is the calling thread's current one whenever they are used.
class TransposeKernels {
 public:
  /// Compiled by the driver. Errors are the driver's.
  Status Load();
  void Unload();
  [[nodiscard]] bool IsLoaded() const { return module_ != nullptr; }
  /// Gives one to the stream.
  Status Give(const Transposition& transposition, CUdeviceptr to, CUdeviceptr from, CUstream stream) const;

 private:
  CUmodule module_ = nullptr;
  std::map<size_t, CUfunction> functions_;  // by the bytes of an element
};

}  // namespace collage::cuda
