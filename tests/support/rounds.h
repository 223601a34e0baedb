#pragma once

#include <cstddef>

namespace collage {

/// How many rounds a test of random cases makes: a tenth of them where a sanitizer watches, since each takes at least ten times as long
/// there. What such a test expects of all rounds together is to be said of as many as these.
constexpr size_t Rounds(size_t rounds) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return (rounds + 9) / 10;
#else
  return rounds;
#endif
}

}  // namespace collage
