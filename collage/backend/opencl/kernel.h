#pragma once

#include <memory>
#include <string_view>

#include "collage/backend/opencl/context.h"
#include "collage/ir/op_sequence.h"
#include "collage/runtime/kernel.h"

namespace collage::opencl {

/// Generates, builds, and brings the constants to the device. Tensors are in row-major order.
Result<std::unique_ptr<Kernel>> CompileKernel(const OpSequence& sequence, std::shared_ptr<OpenClContext> context);

/// The same kernel from what its Serialize gave, with the driver's own code in it: nothing is compiled again.
Result<std::unique_ptr<Kernel>> LoadKernel(std::string_view artifact, std::shared_ptr<OpenClContext> context);

}  // namespace collage::opencl
