#pragma once

#include <cstdint>
#include <string>

namespace collage {

enum class StringCase : uint8_t { kLower, kUpper };

/// A text in UTF-8 with its letters in one case; a text that is no UTF-8 stays as it is.
std::string InCase(const std::string& text, StringCase wanted);

}  // namespace collage
