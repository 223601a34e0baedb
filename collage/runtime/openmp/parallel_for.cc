#include <omp.h>

#include <cstddef>

// Compiled apart from the runtime and opened on first use; see runtime/parallel.cc.
extern "C" __attribute__((visibility("default"))) void collage_parallel_for(size_t pieces, int threads,
                                                                            void (*body)(void* context, size_t piece), void* context) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (size_t piece = 0; piece < pieces; ++piece) body(context, piece);
}
