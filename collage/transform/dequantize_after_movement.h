#pragma once

#include "collage/ir/module.h"

namespace collage {

/// Moves integers of 8 bits in place of the numbers that are made of them, where scale and zero point are one for all:
///
///     transpose(qnn.dequantize(%x, s, z), axes=[0, 2, 1, 3])                                             before
///     qnn.dequantize(transpose(%x, axes=[0, 2, 1, 3]), s, z)                                             after
///
/// A quarter of the bytes is moved, and a product finds the integers that its numbers are made of: models that split attention into heads
/// have a reshape and a transpose between the two. Other users of the numbers keep theirs.
Result<IRModule> DequantizeAfterMovement(const IRModule& module);

}  // namespace collage
