#pragma once

#include <cstddef>

namespace collage {

/// Of so many cases a test tries one where a sanitizer watches, since each takes at least ten times as long there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr size_t kOneOfCases = 10;
#else
inline constexpr size_t kOneOfCases = 1;
#endif

/// How many rounds a test of random cases makes. What such a test expects of all rounds together is to be said of as many as these.
constexpr size_t Rounds(size_t rounds) { return (rounds + kOneOfCases - 1) / kOneOfCases; }

}  // namespace collage
