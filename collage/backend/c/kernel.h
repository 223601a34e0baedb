#pragma once

#include <memory>

#include "collage/backend/c/image.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"

namespace collage::c_source {

/// Links the machine code of an image into this process.
Result<std::unique_ptr<Kernel>> MakeKernel(KernelImage image, const Device& device);

}  // namespace collage::c_source
