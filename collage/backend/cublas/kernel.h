#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collage/backend/cublas/layer.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"

namespace collage::cublas {

/// What the names of algorithms begin with that compute a layer in TF32.
inline constexpr std::string_view kTf32 = "tf32/";

/// The names of the algorithms that the library proposes for a layer, what it deems fastest first: "heuristic0". They mean the same as long
/// as the device and the library's version are the same. Empty where it has none. Errors say what is missing, or are the library's.
Result<std::vector<std::string>> AlgorithmsOf(const Layer& layer, const Device& device);

/// Brings the constants to the device and has the library check the algorithm; nothing runs. Errors are the library's and the device's, and
/// where there is no such algorithm.
Result<std::unique_ptr<Kernel>> MakeKernel(const OpSequence& sequence, const Layer& layer, const std::string& algorithm,
                                           const Device& device);

}  // namespace collage::cublas
