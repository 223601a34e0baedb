#pragma once

#include <memory>

#include "collage/op/remainder.h"

namespace collage {

/// Errors where the message is no model, or an output has no element type.
/// Also `collage_create_remainder`, by which who does not link this library finds it (lower/open_remainder.h).
Result<std::shared_ptr<const Remainder>> CreateRemainder(Remainder::Parts parts);

}  // namespace collage
