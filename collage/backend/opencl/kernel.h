#pragma once

#include <memory>
#include <string_view>

#include "collage/backend/opencl_device/context.h"
#include "collage/ir/op_sequence.h"
#include "collage/runtime/kernel.h"

namespace collage::opencl {

/// Where the constants of a kernel lie.
enum class ConstantScope { kBuffer, kTexture };

/// Whether the device has room in textures for the constants of a function, and there are any.
bool TakesTextures(const OpSequence& sequence, const OpenClContext& context);

/// Generates, builds, and brings the constants to the device. Tensors are in row-major order.
Result<std::unique_ptr<Kernel>> CompileKernel(const OpSequence& sequence, ConstantScope scope, std::shared_ptr<OpenClContext> context);

/// The same kernel from what its Serialize gave. The driver's own code in it is used where it was made by the same driver for the same
/// device; elsewhere the source beside it is compiled. Errors are those of damaged artifacts and of the driver.
Result<std::unique_ptr<Kernel>> LoadKernel(std::string_view artifact, std::shared_ptr<OpenClContext> context);

}  // namespace collage::opencl
