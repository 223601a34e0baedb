#pragma once

#include <memory>
#include <string_view>

#include "collage/backend/cuda_device/context.h"
#include "collage/ir/op_sequence.h"
#include "collage/runtime/kernel.h"

namespace collage::cuda_source {

/// Generates, compiles, and brings the constants to the device. Tensors are in row-major order; `lanes` threads share a row.
Result<std::unique_ptr<Kernel>> CompileKernel(const OpSequence& sequence, int lanes, std::shared_ptr<cuda::CudaContext> context);

/// The same kernel from what its Serialize gave. The machine code in it is used on devices of the same compute capability; elsewhere the
/// source beside it is compiled. Errors are those of damaged artifacts, of the compiler and of the driver.
Result<std::unique_ptr<Kernel>> LoadKernel(std::string_view artifact, std::shared_ptr<cuda::CudaContext> context);

}  // namespace collage::cuda_source
