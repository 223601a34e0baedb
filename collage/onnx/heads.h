#pragma once

#include <utility>

#include "collage/onnx/formula.h"

// What operators of attention share. Heads lie as (batch, heads, length, size), or packed as (batch, length, heads * size).

namespace collage::onnx_io {

/// (batch, length, heads * size), of which heads must be a divisor, as (batch, heads, length, size).
Expr SplitHeads(Formula& formula, const Expr& data, int64_t heads);
/// (batch, heads, length, size) as (batch, length, heads * size).
Expr JoinHeads(Formula& formula, const Expr& data);
/// Each head of keys or values serves as many heads of queries as there are more of them.
Expr RepeatHeads(Formula& formula, const Expr& data, int64_t heads);

/// Pairs of the first elements of each head, twice the width of the caches, turned by angles whose cosine and sine lie as
/// (batch, 1, length, width). A pair is neighbours (`interleaved`), or an element of each half.
Expr Rotated(Formula& formula, const Expr& data, const Expr& cosine, const Expr& sine, bool interleaved);

}  // namespace collage::onnx_io
