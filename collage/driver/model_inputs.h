#pragma once

#include <vector>

#include "collage/runtime/executable.h"

namespace collage {

/// Random inputs, the same in every process, on which whole plans are timed and compared.
std::vector<Tensor> ModelInputs(const Executable& executable);

}  // namespace collage
