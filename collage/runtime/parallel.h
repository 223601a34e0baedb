#pragma once

#include <cstddef>
#include <functional>

namespace collage {

/// More than any machine that this is for has processors; a number beyond it is a mistake, and libgomp may end the process over it.
inline constexpr int kMostThreads = 1024;

/// Runs `body(begin, end)` over pieces of [0, count) on `threads` threads of the process-wide OpenMP team (the one pool that
/// all backends share), returning when all are done. Pieces are contiguous and at least `grain` long.
void ParallelFor(size_t count, size_t grain, int threads, const std::function<void(size_t begin, size_t end)>& body);

/// Sets what libgomp reads when it is loaded (GOMP_SPINCOUNT, see ARCHITECTURE.md) unless the user has set it. Must run before
/// the first backend is opened or ParallelFor called.
void PrepareThreadPool();

}  // namespace collage
