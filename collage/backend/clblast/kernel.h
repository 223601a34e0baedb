#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collage/backend/clblast/layer.h"
#include "collage/backend/opencl_device/context.h"
#include "collage/runtime/kernel.h"

namespace collage::clblast_layers {

/// The names of the ways to compute a layer, the usual first.
std::vector<std::string> MethodsOf(const Layer& layer);

/// Brings the constants to the device and runs once on memory of no meaning: CLBlast compiles its kernels when they are first called, and
/// what a device refuses is known only then. Errors are those of the device and of CLBlast.
Result<std::unique_ptr<Kernel>> MakeKernel(const OpSequence& sequence, const Layer& layer, const std::string& method,
                                           std::shared_ptr<opencl::OpenClContext> context);

}  // namespace collage::clblast_layers
