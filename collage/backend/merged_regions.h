#pragma once

// Regions of several operators of one library. The classic flow merges what one backend takes into regions as large as can be, and each
// becomes one function with many composites inside; a library compiles one composite at a time. Here such a function becomes one kernel,
// made of the library's own for each composite.
//
// A region is a function whose every call is a view or that of a composite which the backend's name labels ("dnnl.conv2d_relu"). It has one
// variant. Of members that compute much (a convolution, a product) it takes the library's first variant; of the others the one
// that needs the fewest bytes converted, the first of equal ones. So blocked layouts stay blocked inside, and tensors enter and leave as
// the members want and give them.

#include <memory>
#include <string_view>

#include "collage/backend/backend.h"

namespace collage {

/// "merged/" and what tells which variants the members take.
bool IsMergedVariant(std::string_view name);
/// Errors say why a function is no region of this backend.
Result<Variant> MergedVariant(const Backend& backend, const Function& function, const Device& device);
/// Intermediate tensors lie in the kernel's workspace, planned once; members that are equal, weights included, share packed weights.
Result<std::unique_ptr<Kernel>> CompileMerged(const Backend& backend, const Function& function, const Device& device,
                                              const Variant& variant);

}  // namespace collage
