#pragma once

#include <string>

#include "collage/backend/backend.h"
#include "collage/support/result.h"

namespace collage::cuda_source {

/// NVRTC, the compiler of CUDA C++ as a library: its version, or why it is not there. It needs no GPU.
const Presence& Compiler();

/// Machine code of CUDA C++ for devices of one compute capability: 9, 0. Errors quote the compiler's first one.
Result<std::string> CompileCuda(const std::string& source, int major, int minor);

}  // namespace collage::cuda_source
