#pragma once

#include <memory>

#include "collage/backend/c/image.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"

namespace collage::c_source {

/// Of all kernels of this process.
artifact::SharedCodes& Codes();
/// Errors on code that does not define all loops of the image.
Result<std::unique_ptr<Kernel>> MakeKernel(KernelImage image, const Device& device);

}  // namespace collage::c_source
