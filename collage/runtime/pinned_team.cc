#include "collage/runtime/pinned_team.h"

#include <unistd.h>

#include "collage/runtime/parallel.h"

namespace collage {
namespace {

/// Every `step`-th of `allowed`, from the `first`-th on.
cpu_set_t Every(const cpu_set_t& allowed, size_t first, size_t step) {
  cpu_set_t share;
  CPU_ZERO(&share);
  size_t position = 0;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && position++ % step == first) CPU_SET(cpu, &share);
  }
  return share;
}

}  // namespace

PinnedTeam::PinnedTeam(int threads) {
  const auto count = static_cast<size_t>(threads);
  cpu_set_t allowed;
  if (threads < 2 || ::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < threads) return;
  pinned_.resize(count);
  ParallelFor(count, 1, threads, [&](size_t begin, size_t) {
    Pinned& pinned = pinned_[begin];
    const cpu_set_t share = Every(allowed, begin, count);
    if (::sched_getaffinity(0, sizeof pinned.before, &pinned.before) != 0) return;
    if (::sched_setaffinity(0, sizeof share, &share) == 0) pinned.thread = ::gettid();
  });
}

PinnedTeam::~PinnedTeam() {
  // Backwards, because a thread that stood in for another was pinned twice.
  for (auto pinned = pinned_.rbegin(); pinned != pinned_.rend(); ++pinned) {
    if (pinned->thread != 0) ::sched_setaffinity(pinned->thread, sizeof pinned->before, &pinned->before);
  }
}

}  // namespace collage
