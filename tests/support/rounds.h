#pragma once

#include <cstddef>

#include "collage/support/sanitizers.h"

namespace collage {

/// Of so many cases a test tries one where a sanitizer watches, since each takes at least ten times as long there.
#if COLLAGE_ADDRESS_SANITIZER || COLLAGE_THREAD_SANITIZER
inline constexpr size_t kOneOfCases = 10;
#else
inline constexpr size_t kOneOfCases = 1;
#endif

/// How many rounds a test of random cases makes, or how many operators the chain of a test of scale has. What such a test expects of all
/// rounds together is to be said of as many as these.
constexpr size_t Rounds(size_t rounds) { return (rounds + kOneOfCases - 1) / kOneOfCases; }

}  // namespace collage
