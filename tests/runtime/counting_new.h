#pragma once

#include <cstddef>

namespace collage {

/// How often operator new has been called in this test program; counting_new.cc replaces it.
size_t AllocationCount();

}  // namespace collage
