#pragma once

#include <memory>

#include "collage/backend/cudnn/plan.h"
#include "collage/runtime/kernel.h"

namespace collage::cudnn {

/// Brings the constants to the device and runs once on memory of no meaning: the library loads code when it first runs, which it may not
/// while work is being recorded, and what a device refuses is known only then. Errors are those of the device and of the library.
Result<std::unique_ptr<Kernel>> MakeKernel(const OpSequence& sequence, const Layer& layer, bool channels_last, const Choice& choice,
                                           Session& session);

}  // namespace collage::cudnn
