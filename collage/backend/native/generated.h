#pragma once

#include <memory>

#include "collage/backend/backend.h"
#include "collage/ir/op_sequence.h"

namespace collage::native {

/// Generates code for a straight-line function and links it.
Result<std::unique_ptr<Kernel>> CompileGenerated(const OpSequence& sequence, const Device& device, const Variant& variant);

}  // namespace collage::native
