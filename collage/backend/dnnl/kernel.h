#pragma once

#include <memory>

#include "collage/backend/dnnl/plan.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"

namespace collage::dnnl_backend {

/// Makes the primitive of a plan and packs its constants. Throws dnnl::error.
Result<std::unique_ptr<Kernel>> MakeKernel(const OpSequence& sequence, const Plan& plan, const Device& device);

}  // namespace collage::dnnl_backend
