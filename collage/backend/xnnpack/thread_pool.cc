// The functions of libpthreadpool that XNNPACK calls, on the team of threads that all backends share. The library finds these instead of
// its pool's own: the shared object that asked for it comes before what it asks for itself. A pool of its own would fight the team.

#include "collage/backend/xnnpack/thread_pool.h"

#include <pthreadpool.h>

#include <algorithm>
#include <array>
#include <utility>

#include "collage/runtime/parallel.h"

namespace {

/// Calls `task(context, begin of each dimension..., extent of each tile...)` for each tile of a range of `dimensions` dimensions, of which
/// the last `tiled` ones are cut into tiles and the others into single indices.
template <size_t dimensions, size_t tiled, class Task>
void ForEachTile(pthreadpool_t pool, Task task, void* context, const std::array<size_t, dimensions>& range,
                 const std::array<size_t, tiled>& tile) {
  struct Loop {
    Task task;
    void* context;
    const std::array<size_t, dimensions>& range;
    const std::array<size_t, tiled>& tile;
    std::array<size_t, dimensions> counts;
  } loop{task, context, range, tile, range};
  size_t total = 1;
  for (size_t d = 0; d < dimensions; ++d) {
    if (d + tiled >= dimensions) loop.counts[d] = (range[d] + tile[d + tiled - dimensions] - 1) / tile[d + tiled - dimensions];
    total *= loop.counts[d];
  }
  const int threads = pool ? reinterpret_cast<const collage::xnnpack::TeamShare*>(pool)->threads : 1;
  // One reference, which a std::function holds without allocating.
  collage::ParallelFor(total, 1, threads, [&loop](size_t begin, size_t end) {
    for (size_t number = begin; number < end; ++number) {
      std::array<size_t, dimensions + tiled> arguments;
      size_t rest = number;
      for (size_t d = dimensions; d-- > 0;) {
        const size_t index = rest % loop.counts[d];
        rest /= loop.counts[d];
        arguments[d] = index;
        if (d + tiled < dimensions) continue;
        const size_t t = d + tiled - dimensions;
        arguments[d] = index * loop.tile[t];
        arguments[dimensions + t] = std::min(loop.tile[t], loop.range[d] - arguments[d]);
      }
      [&]<size_t... i>(std::index_sequence<i...>) { loop.task(loop.context, arguments[i]...); }
      (std::make_index_sequence<dimensions + tiled>());
    }
  });
}

}  // namespace

// They are looked up by name.
#pragma GCC visibility push(default)

// Flags are hints. The one that XNNPACK gives would turn denormal numbers into zero, which no other backend does.
extern "C" {

size_t pthreadpool_get_threads_count(pthreadpool_t pool) {
  return pool ? static_cast<size_t>(reinterpret_cast<const collage::xnnpack::TeamShare*>(pool)->threads) : 1;
}

void pthreadpool_parallelize_1d(pthreadpool_t pool, pthreadpool_task_1d_t task, void* context, size_t range, uint32_t /*flags*/) {
  ForEachTile<1, 0>(pool, task, context, {range}, {});
}

void pthreadpool_parallelize_1d_tile_1d(pthreadpool_t pool, pthreadpool_task_1d_tile_1d_t task, void* context, size_t range, size_t tile,
                                        uint32_t /*flags*/) {
  ForEachTile<1, 1>(pool, task, context, {range}, {tile});
}

void pthreadpool_parallelize_2d(pthreadpool_t pool, pthreadpool_task_2d_t task, void* context, size_t i, size_t j, uint32_t /*flags*/) {
  ForEachTile<2, 0>(pool, task, context, {i, j}, {});
}

void pthreadpool_parallelize_2d_tile_1d(pthreadpool_t pool, pthreadpool_task_2d_tile_1d_t task, void* context, size_t i, size_t j,
                                        size_t tile_j, uint32_t /*flags*/) {
  ForEachTile<2, 1>(pool, task, context, {i, j}, {tile_j});
}

void pthreadpool_parallelize_2d_tile_2d(pthreadpool_t pool, pthreadpool_task_2d_tile_2d_t task, void* context, size_t i, size_t j,
                                        size_t tile_i, size_t tile_j, uint32_t /*flags*/) {
  ForEachTile<2, 2>(pool, task, context, {i, j}, {tile_i, tile_j});
}

void pthreadpool_parallelize_3d(pthreadpool_t pool, pthreadpool_task_3d_t task, void* context, size_t i, size_t j, size_t k,
                                uint32_t /*flags*/) {
  ForEachTile<3, 0>(pool, task, context, {i, j, k}, {});
}

void pthreadpool_parallelize_3d_tile_2d(pthreadpool_t pool, pthreadpool_task_3d_tile_2d_t task, void* context, size_t i, size_t j, size_t k,
                                        size_t tile_j, size_t tile_k, uint32_t /*flags*/) {
  ForEachTile<3, 2>(pool, task, context, {i, j, k}, {tile_j, tile_k});
}

void pthreadpool_parallelize_4d(pthreadpool_t pool, pthreadpool_task_4d_t task, void* context, size_t i, size_t j, size_t k, size_t l,
                                uint32_t /*flags*/) {
  ForEachTile<4, 0>(pool, task, context, {i, j, k, l}, {});
}

void pthreadpool_parallelize_4d_tile_2d(pthreadpool_t pool, pthreadpool_task_4d_tile_2d_t task, void* context, size_t i, size_t j, size_t k,
                                        size_t l, size_t tile_k, size_t tile_l, uint32_t /*flags*/) {
  ForEachTile<4, 2>(pool, task, context, {i, j, k, l}, {tile_k, tile_l});
}

void pthreadpool_parallelize_5d(pthreadpool_t pool, pthreadpool_task_5d_t task, void* context, size_t i, size_t j, size_t k, size_t l,
                                size_t m, uint32_t /*flags*/) {
  ForEachTile<5, 0>(pool, task, context, {i, j, k, l, m}, {});
}

void pthreadpool_parallelize_5d_tile_2d(pthreadpool_t pool, pthreadpool_task_5d_tile_2d_t task, void* context, size_t i, size_t j, size_t k,
                                        size_t l, size_t m, size_t tile_l, size_t tile_m, uint32_t /*flags*/) {
  ForEachTile<5, 2>(pool, task, context, {i, j, k, l, m}, {tile_l, tile_m});
}

void pthreadpool_parallelize_6d_tile_2d(pthreadpool_t pool, pthreadpool_task_6d_tile_2d_t task, void* context, size_t i, size_t j, size_t k,
                                        size_t l, size_t m, size_t n, size_t tile_m, size_t tile_n, uint32_t /*flags*/) {
  ForEachTile<6, 2>(pool, task, context, {i, j, k, l, m, n}, {tile_m, tile_n});
}

}  // extern "C"

#pragma GCC visibility pop
