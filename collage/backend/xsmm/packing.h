#pragma once

#include <cstdint>

#include "collage/backend/xsmm/tiling.h"

namespace collage::xsmm {

/// Elements of a constant that is packed for `tiling`: all of it, once.
int64_t PackedCount(const Tiling& tiling);
/// Packs `constant` as Packing says; `packed` has room for PackedCount elements.
void Pack(const Tiling& tiling, const float* constant, float* packed);

/// target[d][c] = source[c * source_stride + d] for depth x columns elements; the target's rows follow one another.
void TransposePanel(const float* source, int64_t source_stride, int64_t columns, int64_t depth, float* target);

}  // namespace collage::xsmm
