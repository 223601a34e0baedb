#pragma once

// Functions of a chosen size in the shapes that partitioning and searching meet, with small tensors: only structure counts.

#include <cstddef>
#include <string>

#include "collage/ir/expr.h"

namespace collage {

/// Convolution, bias, activation, one after the other.
Expr ConvolutionChain(size_t operators);
/// Blocks of two convolutions (each with a bias) whose result is added to their input.
Expr ResidualNetwork(size_t operators);
/// Cells that read the two cells before them: five blocks, each the sum of two separable convolutions, poolings or their inputs,
/// concatenated; about 60 operators a cell (Zoph et al., "Learning Transferable Architectures for Scalable Image Recognition").
Expr NasnetLike(size_t operators);
/// Elementwise operators one after the other. Each hundredth is stated to be on the GPU, then on the CPU again, so that copies are made all
/// along.
Expr AnnotatedChain(size_t operators);

}  // namespace collage
