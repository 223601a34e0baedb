#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

// An element of a tensor of strings is the number of a string that the process keeps: each is kept once, in UTF-8, until the process
// ends, and 0 is the empty one. So such elements are moved, compared for equality and filled with zero like numbers, and no kernel or
// buffer has to know them. A number means nothing outside of its process: what is written holds the strings themselves.

/// The number of a string.
uint64_t NumberOfString(const std::string& text);
/// The string of a number; the empty one for a number that none has, as in memory that nobody wrote.
const std::string& StringOfNumber(uint64_t number);

/// The elements of a tensor of strings, in row-major order.
std::vector<std::string> StringsOf(const Tensor& tensor);
/// As many as the shape has elements.
Tensor StringTensor(Shape shape, const std::vector<std::string>& values);
/// The numbers as a tensor of uint64; shares the buffer.
Tensor NumbersOfStrings(const Tensor& tensor);

/// The elements as other processes read them: of each the bytes that its text has (4 bytes, little-endian), and the text.
std::string WriteStrings(const Tensor& tensor);
/// What WriteStrings wrote of a tensor of this shape. Errors where `written` ends early or is too long.
Result<Tensor> ReadStrings(Shape shape, std::string_view written);

/// Characters of a text in UTF-8; nothing where it is none.
std::optional<std::u32string> CharactersOf(std::string_view text);
std::string ToUtf8(std::u32string_view characters);

}  // namespace collage
