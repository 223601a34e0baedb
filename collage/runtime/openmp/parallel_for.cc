#include <omp.h>

#include <cstddef>

// Compiled apart from the runtime and opened on first use; see runtime/parallel.cc.
extern "C" __attribute__((visibility("default"))) void collage_parallel_for(size_t pieces, int threads,
                                                                            void (*body)(void* context, size_t piece), void* context) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (size_t piece = 0; piece < pieces; ++piece) body(context, piece);
}

extern "C" __attribute__((visibility("default"))) void collage_parallel_region(int threads,
                                                                               void (*body)(void* context, int index, int size),
                                                                               void* context) {
#pragma omp parallel num_threads(threads)
  body(context, omp_get_thread_num(), omp_get_num_threads());
}

/// Of the innermost region that the calling thread is in.
extern "C" __attribute__((visibility("default"))) void collage_team_wait() {
#pragma omp barrier
}
