#pragma once

#include <memory>

#include "collage/op/remainder.h"

namespace collage {

/// As CreateRemainder (onnx/remainder.h), whose library is opened for it: programs without a remainder load no reader of models. Errors
/// where the library is not beside this one.
Result<std::shared_ptr<const Remainder>> OpenRemainder(Remainder::Parts parts);

}  // namespace collage
