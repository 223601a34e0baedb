#pragma once

// A Primitive function may permit its kernel to compute with fewer bits than its types have:
//
//   fn (%p0, Primitive=1, Compiler="dnnl", Precision="bf16=0.02", Variant="bf16/direct") { nn.conv2d(%p0, meta[relay.Constant][0]) }
//
// Whoever compiles, compares, sends, saves or hashes a function does so with its attributes. So the permit reaches backends and workers,
// is part of the keys of prices and verdicts, decides the tolerance, and is in the file of a program, where it stands once.

#include <optional>
#include <string_view>

#include "collage/ir/expr.h"
#include "collage/tensor/precision.h"

namespace collage {

inline constexpr std::string_view kPrecisionAttribute = "Precision";

/// Nothing where the function says nothing, or nothing that Precision::Parse reads.
std::optional<Precision> PermittedPrecision(const Function& function);
/// Whether it permits to store in that type what Precision::stored says of it.
bool Permits(const Function& function, DType stored);
/// The function literal with the permit.
Expr WithPrecision(const Expr& function, const Precision& precision);

}  // namespace collage
