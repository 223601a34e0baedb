#include "collage/support/check.h"

#include <cstdio>
#include <cstdlib>

namespace collage {

void CheckFailed(const char* file, int line, const char* condition, const std::string& detail) {
  std::fprintf(stderr, "%s:%d: internal error: %s%s%s\n", file, line, condition, detail.empty() ? "" : ": ", detail.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace collage
