#pragma once

// Kernels that call a library: a product of the library's and generated code behind it, on panels of rows that stay in the cache in
// between.

#include <memory>
#include <vector>

#include "collage/backend/backend.h"

namespace collage::native {

/// Could this function, which calls a library (library_call.h), be one kernel? The reason names the operator that is in the way. Whether
/// the library has a kernel for it is not asked.
Verdict SupportsPanels(const Function& function);
/// Panels of different heights, and the library's ways to compute each. Empty where the library has none, or is absent.
std::vector<Variant> ListPanelVariants(const Function& function, const Device& device);
Result<std::unique_ptr<Kernel>> CompilePanels(const Function& function, const Device& device, const Variant& variant);

}  // namespace collage::native
