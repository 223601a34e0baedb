#pragma once

#include "collage/backend/native/codegen/index.h"
#include "collage/tensor/layout.h"

namespace collage::native {

/// Extents of the array that holds a tensor in a layout: outer dimensions in their order, then the blocks.
Shape PhysicalShape(const Shape& shape, const Layout& layout);
/// Where a logical position lies in that array.
Index ToPhysical(const Index& index, const Shape& shape, const Layout& layout);
/// The reverse. Blocked dimensions must be whole blocks.
Index ToLogical(const Index& physical, const Shape& shape, const Layout& layout);

}  // namespace collage::native
