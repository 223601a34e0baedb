#pragma once

#include <memory>

#include "collage/backend/backend.h"
#include "collage/ir/expr.h"

namespace collage::native {

/// Generates code for a straight-line function and links it, or shares that of a kernel which differs in its weights only.
Result<std::unique_ptr<Kernel>> CompileGenerated(const Function& function, const Device& device, const Variant& variant);

}  // namespace collage::native
