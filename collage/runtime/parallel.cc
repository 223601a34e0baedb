#include "collage/runtime/parallel.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "collage/support/check.h"
#include "collage/support/shared_object.h"

namespace collage {
namespace {

using ParallelForEntry = void(size_t pieces, int threads, void (*body)(void*, size_t), void* context);

using ParallelRegionEntry = void(int threads, void (*body)(void*, int, int), void* context);
using WaitEntry = void();

template <class Entry>
Entry* OpenPool(const char* name) {
  PrepareThreadPool();
  const std::filesystem::path file = SharedObjectOf(&ParallelFor).parent_path() / COLLAGE_OPENMP_NAME;
  const Result<Entry*> entry = OpenFunction<Entry>(file, name);
  COLLAGE_CHECK(entry, entry.error().message);
  return *entry;
}

struct Job {
  size_t count;
  size_t pieces;
  const std::function<void(size_t, size_t)>* body;
};

void RunPiece(void* context, size_t piece) {
  const Job& job = *static_cast<const Job*>(context);
  const size_t begin = job.count * piece / job.pieces;
  const size_t end = job.count * (piece + 1) / job.pieces;
  if (begin < end) (*job.body)(begin, end);
}

}  // namespace

void ParallelFor(size_t count, size_t grain, int threads, const std::function<void(size_t, size_t)>& body) {
  const size_t most = count / std::max<size_t>(grain, 1);
  const size_t pieces = std::clamp<size_t>(most, 1, static_cast<size_t>(std::max(threads, 1)));
  if (pieces == 1) {
    body(0, count);
    return;
  }
  static ParallelForEntry* const pool = OpenPool<ParallelForEntry>("collage_parallel_for");
  Job job{count, pieces, &body};
  pool(pieces, static_cast<int>(pieces), RunPiece, &job);
}

void ParallelRegion(int threads, const std::function<void(const TeamMember&)>& body) {
  if (threads <= 1) {
    body({0, 1, [] {}});
    return;
  }
  static ParallelRegionEntry* const pool = OpenPool<ParallelRegionEntry>("collage_parallel_region");
  static WaitEntry* const wait = OpenPool<WaitEntry>("collage_team_wait");
  const auto run = [](void* context, int index, int size) {
    (*static_cast<const std::function<void(const TeamMember&)>*>(context))({index, size, wait});
  };
  pool(threads, run, const_cast<void*>(static_cast<const void*>(&body)));
}

void PrepareThreadPool() {
  // libgomp spins long by default: another pool on the same cores then runs at half speed for the rest of the process.
  // This count keeps both within 5-15% of their speed alone; passive waiting would cost microsecond kernels 30%.
  ::setenv("GOMP_SPINCOUNT", "20000", /*overwrite=*/0);
}

}  // namespace collage
