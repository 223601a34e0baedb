#pragma once

#include <memory>

#include "collage/runtime/device.h"
#include "collage/runtime/execution_plan.h"
#include "collage/runtime/kernel.h"

namespace collage {

/// The kernels of a program as one kernel whose ports are the program's endpoints, in these layouts. Errors as CheckProgram's.
Result<std::unique_ptr<Kernel>> MakeRegionKernel(Program program, const EndpointLayouts& layouts, const Device& device);

}  // namespace collage
