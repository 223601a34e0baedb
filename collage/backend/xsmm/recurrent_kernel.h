#pragma once

#include <memory>

#include "collage/backend/xsmm/recurrent_layer.h"
#include "collage/runtime/kernel.h"

namespace collage::xsmm {

/// The layer on at most so many threads, all tensors plain. Errors where the library declines.
Result<std::unique_ptr<Kernel>> MakeRecurrentKernel(const RecurrentLayer& layer, int threads);

}  // namespace collage::xsmm
