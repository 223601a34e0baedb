#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collage/ir/attributes.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// True for the words that are numbers: "inf", "nanf", "inff64", ...
bool IsNumberWord(std::string_view word);

/// A scalar written as Relay writes it: "1.5f" and "1.5" are float32, "2f64" is float64, "3" is int32, "3i64", "3u8" and the
/// like have the dtype of their suffix. Narrow types (tensor/narrow.h) have no literals.
Result<Tensor> ScalarFromLiteral(std::string_view text);

/// The attribute value of a number: an integer unless it has a point, an exponent or a suffix "f".
Result<AttributeValue> AttributeFromLiteral(std::string_view text);

/// The literal that reads back bit for bit as this scalar; nothing for what has none (tensors with dimensions, 16-bit
/// floating point types, not-a-numbers).
std::optional<std::string> LiteralOf(const Tensor& scalar);

/// What a string token means, escapes resolved.
std::string Unescape(std::string_view text);

}  // namespace collage
