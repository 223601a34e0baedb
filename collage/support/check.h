#pragma once

#include <string>

namespace collage {

/// Prints the failed condition and aborts: a broken invariant is a bug of ours, not an input error.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition, const std::string& detail);

}  // namespace collage

#define COLLAGE_CHECK(condition, ...)                                                                   \
  do {                                                                                                  \
    if (!(condition)) ::collage::CheckFailed(__FILE__, __LINE__, #condition, std::string(__VA_ARGS__)); \
  } while (false)
