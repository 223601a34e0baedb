#pragma once

#include <memory>

#include "collage/cost/kernel_timer.h"

namespace collage {

/// Times kernels in a worker process, or in this one where `isolated` is false or the worker program is not there (a warning then).
std::unique_ptr<KernelTimer> MakeTimer(bool isolated);

}  // namespace collage
