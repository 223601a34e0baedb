#pragma once

#include <string>

#include "collage/tensor/tensor.h"

namespace collage::element_code {

// How generated code stores elements of a type, and in which it computes with them. Floating point of 16 bits is stored as its bits.

/// Whether there is code for it.
bool HasType(DType dtype);
/// "unsigned short".
std::string StoredType(DType dtype);
/// "float".
std::string ComputedType(DType dtype);
/// A number of the computed type, of the text of a stored element; and the reverse, rounded to nearest even.
std::string FromStored(DType dtype, const std::string& text);
std::string ToStored(DType dtype, const std::string& text);
/// A number as it would be after it was stored.
std::string Rounded(DType dtype, const std::string& text);

/// The functions that these texts call, but from_float16 and to_float16, which languages have ways of their own for. They call as_float and
/// as_uint, which take the bits of 32-bit numbers. `qualifiers` stand before each.
std::string ConversionFunctions(const std::string& qualifiers);

}  // namespace collage::element_code
