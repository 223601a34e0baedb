#include "collage/onnx/one_line.h"

#include <algorithm>
#include <cstdint>

namespace collage::onnx_io {
namespace {

/// A character and its bytes; no bytes where what comes first is no UTF-8: cut off, longer than it need be, half of a pair of UTF-16, or
/// beyond the last character that there is.
struct Character {
  uint32_t value = 0;
  size_t bytes = 0;
};

Character FirstOf(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc0 || first >= 0xf8 || text.size() < bytes) return {};
  uint32_t value = first & (0x7fU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    value = value << 6 | (byte(i) & 0x3fU);
  }
  constexpr uint32_t kFirstOf[] = {0x80, 0x800, 0x10000};
  const bool is_half_of_pair = value >= 0xd800 && value < 0xe000;
  return value < kFirstOf[bytes - 2] || is_half_of_pair || value > 0x10ffff ? Character{} : Character{value, bytes};
}

/// What ends or turns a line. Letters that are written from right to left turn it as well, but are letters.
bool IsControl(uint32_t value) {
  const auto between = [&](uint32_t low, uint32_t high) { return value >= low && value <= high; };
  return value < 0x20 || between(0x7f, 0x9f) || between(0x2028, 0x202e) || between(0x2066, 0x2069);
}

std::string Escaped(uint32_t value) {
  switch (value) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  const size_t digits = value > 0xff ? 4 : 2;
  std::string text = digits == 4 ? "\\u" : "\\x";
  for (size_t i = digits; i-- > 0;) text += kDigits[value >> (4 * i) & 0xfU];
  return text;
}

}  // namespace

std::string InOneLine(std::string_view text) {
  std::string line;
  for (size_t i = 0; i < text.size();) {
    const Character character = FirstOf(text.substr(i));
    if (character.bytes == 0) {
      line += Escaped(static_cast<unsigned char>(text[i++]));
      continue;
    }
    line += IsControl(character.value) ? Escaped(character.value) : std::string(text.substr(i, character.bytes));
    i += character.bytes;
  }
  return line;
}

}  // namespace collage::onnx_io
