#include "collage/backend/openblas/core_type.h"

#include <cblas.h>

#include <cstdlib>

// What the library calls when it is loaded and left; a build for one processor has neither.
extern "C" {
__attribute__((weak)) void gotoblas_dynamic_init();
__attribute__((weak)) void gotoblas_dynamic_quit();
}

namespace collage::openblas {
namespace {

constexpr const char* kVariable = "OPENBLAS_CORETYPE";

/// Of the names that every release since AVX-512 knows; null for a processor with neither instruction set.
const char* CoreTypeByInstructions() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

std::string Choose() {
  const char* core_type = CoreTypeByInstructions();
  const bool is_unknown_to_library = openblas_get_corename() == std::string("Prescott") && core_type != nullptr;
  if (is_unknown_to_library && gotoblas_dynamic_init && gotoblas_dynamic_quit && !std::getenv(kVariable)) {
    ::setenv(kVariable, core_type, /*overwrite=*/0);
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    ::unsetenv(kVariable);
  }
  return openblas_get_corename();
}

}  // namespace

const std::string& CoreType() {
  static const std::string chosen = Choose();
  return chosen;
}

}  // namespace collage::openblas
