#pragma once

#include <string>
#include <string_view>

#include "collage/support/result.h"

namespace collage::onnx_io {

/// As a terminal shows it in one line: control characters are written as \n, \t or \x1b, those beyond ASCII as \u2028, and bytes that
/// are no UTF-8 as \xff. Names in models are any bytes.
std::string InOneLine(std::string_view text);

inline Error InOneLine(const Error& error) { return Error{InOneLine(error.message)}; }

}  // namespace collage::onnx_io
