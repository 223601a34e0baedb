#include "collage/backend/host_reference_team.h"

#include "collage/runtime/parallel.h"

namespace collage {

HostReferenceTeam::HostReferenceTeam(int threads)
    : team_([threads](int64_t count, const std::function<void(int64_t begin, int64_t end)>& body) {
        ParallelFor(static_cast<size_t>(count), 1, threads,
                    [&](size_t begin, size_t end) { body(static_cast<int64_t>(begin), static_cast<int64_t>(end)); });
      }),
      use_(team_) {}

}  // namespace collage
