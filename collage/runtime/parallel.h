#pragma once

#include <cstddef>
#include <functional>

namespace collage {

/// More than any machine that this is for has processors; a number beyond it is a mistake, and libgomp may end the process over it.
inline constexpr int kMostThreads = 1024;

/// Runs `body(begin, end)` over pieces of [0, count) on `threads` threads of the process-wide OpenMP team (the one pool that
/// all backends share), returning when all are done. Pieces are contiguous and at least `grain` long.
void ParallelFor(size_t count, size_t grain, int threads, const std::function<void(size_t begin, size_t end)>& body);

/// One thread of a parallel region.
struct TeamMember {
  int index;  ///< below size
  int size;   ///< at most the threads that were asked for
  /// Returns when every member has called it as often: what any has written before, all see then.
  void (*wait)();
};

/// Runs `body` once on each of at most `threads` threads of the team (there may be fewer), returning when all are done. For work in which
/// threads wait for one another on the way: a region and its waits take less than as many regions.
void ParallelRegion(int threads, const std::function<void(const TeamMember& member)>& body);

/// Sets what libgomp reads when it is loaded (GOMP_SPINCOUNT, see ARCHITECTURE.md) unless the user has set it. Must run before
/// the first backend is opened or ParallelFor called.
void PrepareThreadPool();

}  // namespace collage
