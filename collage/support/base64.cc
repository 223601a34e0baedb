#include "collage/support/base64.h"

#include <array>
#include <cstdint>

namespace collage {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr char kPadding = '=';
constexpr uint8_t kNoDigit = 64;

std::array<uint8_t, 256> ValuesOfDigits() {
  std::array<uint8_t, 256> values;
  values.fill(kNoDigit);
  for (size_t i = 0; i < kDigits.size(); ++i) values[static_cast<unsigned char>(kDigits[i])] = static_cast<uint8_t>(i);
  return values;
}

}  // namespace

std::string ToBase64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) group = group << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (size_t i = 0; i < 4; ++i) text += at + i > bytes.size() ? kPadding : kDigits[group >> (18 - 6 * i) & 63];
  }
  return text;
}

Result<std::string> FromBase64(std::string_view text) {
  static const std::array<uint8_t, 256> values = ValuesOfDigits();
  if (text.size() % 4 != 0) return Fail("base64 text of " + std::to_string(text.size()) + " characters, expected a multiple of 4");
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t at = 0; at < text.size(); at += 4) {
    uint32_t group = 0;
    size_t padding = 0;
    for (size_t i = 0; i < 4; ++i) {
      const bool is_padding = text[at + i] == kPadding && i >= 2 && at + 4 == text.size();
      const uint8_t value = is_padding ? 0 : values[static_cast<unsigned char>(text[at + i])];
      if (value == kNoDigit || (padding > 0 && !is_padding))
        return Fail("base64 text with the character '" + std::string(1, text[at + i]) + "' at " + std::to_string(at + i));
      padding += is_padding ? 1 : 0;
      group = group << 6 | value;
    }
    for (size_t i = 0; i + padding < 3; ++i) bytes += static_cast<char>(group >> (16 - 8 * i) & 255);
  }
  return bytes;
}

}  // namespace collage
