#pragma once

#include <string>

#include "collage/tensor/tensor_type.h"

namespace collage {

/// A shape as `--shape` takes it: "1x3x224x224"; a scalar "()".
std::string ExtentsText(const Shape& shape);

}  // namespace collage
