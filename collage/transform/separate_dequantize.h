#pragma once

#include "collage/ir/module.h"

namespace collage {

/// Gives each user of what makes numbers of integers of 8 bits numbers of its own:
///
///     %0 = qnn.dequantize(%x, s, z); add(nn.relu(%0), tanh(%0))                                          before
///     add(nn.relu(qnn.dequantize(%x, s, z)), tanh(qnn.dequantize(%x, s, z)))                             after
///
/// Models share it among users, of which each would like it inside its own kernel, where it costs nothing: a product of integers takes no
/// other. Of partitions that share it, one would have to store the numbers. So it comes after what merges equal calls.
Result<IRModule> SeparateDequantize(const IRModule& module);

}  // namespace collage
