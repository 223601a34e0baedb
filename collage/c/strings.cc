#include "collage/tensor/strings.h"

#include "collage/c/objects.h"

using namespace collage::c_abi;

collage_error* collage_string_number(const char* text, size_t bytes, uint64_t* number) noexcept {
  return Guarded([&]() -> collage_error* {
    if (!number || (!text && bytes > 0)) return Refuse("collage_string_number: text and number must not be null");
    *number = collage::NumberOfString(std::string(text ? text : "", bytes));
    return nullptr;
  });
}

const char* collage_string_text(uint64_t number, size_t* bytes) noexcept {
  const std::string& text = collage::StringOfNumber(number);
  if (bytes) *bytes = text.size();
  return text.c_str();
}
