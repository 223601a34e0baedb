#pragma once

#include "collage/cost/belief.h"
#include "collage/ir/expr.h"
#include "collage/runtime/device.h"

namespace collage {

/// What no device of this kind can exceed; rooflines come from it, so it must not be too low.
struct DeviceLimits {
  double flops_per_second;
  double bytes_per_second;
};
/// Generous limits of a CPU with 512-bit registers, two fused multiply-adds a cycle at 5 GHz for each thread, and a factor of four for
/// the multiplications that fast convolution algorithms save (Lavin and Gray, "Fast Algorithms for Convolutional Neural
/// Networks", 2016, F(4x4, 3x3)).
DeviceLimits LimitsOf(const Device& device);

/// Heavy operators, bytes and roofline of an extracted function. The roofline counts only what no kernel can do without: elements that
/// reach a result, no padding, no more of a parameter than the slices that are read of it.
KernelFacts WorkOf(const Function& function, const Device& device);

/// The same of a kernel that stores numbers in 16 bits: half of the bytes, products of matrix units, and relatives of its own, since what
/// kernels of float32 take says nothing of it.
KernelFacts WithFewerBits(KernelFacts facts);

}  // namespace collage
