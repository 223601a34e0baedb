#pragma once

#include <pthreadpool.h>

namespace collage::xnnpack {

/// What XNNPACK is given as its thread pool: so many threads of the one team that all backends share. Stands for itself, owns nothing.
struct TeamShare {
  int threads;

  pthreadpool_t AsPool() { return reinterpret_cast<pthreadpool_t>(this); }
};

}  // namespace collage::xnnpack
