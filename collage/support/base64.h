#pragma once

#include <string>
#include <string_view>

#include "collage/support/result.h"

namespace collage {

/// Bytes as text (RFC 4648, section 4, padded): four characters for three bytes.
std::string ToBase64(std::string_view bytes);
/// Errors on what ToBase64 does not give.
Result<std::string> FromBase64(std::string_view text);

}  // namespace collage
