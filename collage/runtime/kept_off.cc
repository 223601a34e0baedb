#include "collage/runtime/kept_off.h"

#include "collage/runtime/parallel.h"

namespace collage {

KeptOff::KeptOff(int threads, const Processors& processors) : threads_(threads), saved_(new Saved[static_cast<size_t>(threads)]) {
  CPU_ZERO(&left_);
  for (const int number : Without(UsableProcessors(), processors)) CPU_SET(static_cast<size_t>(number), &left_);
}

void KeptOff::Begin() { OfEachThread(&KeptOff::Leave); }
void KeptOff::End() { OfEachThread(&KeptOff::Return); }

void KeptOff::OfEachThread(void (KeptOff::*change)(Saved&)) {
  const auto count = static_cast<size_t>(threads_);
  ParallelFor(count, 1, threads_, [this, change](size_t begin, size_t end) {
    for (size_t thread = begin; thread < end; ++thread) (this->*change)(saved_[thread]);
  });
}

void KeptOff::Leave(Saved& saved) {
  saved.is_changed = false;
  if (::sched_getaffinity(0, sizeof saved.before, &saved.before) != 0) return;
  cpu_set_t wanted;
  CPU_AND(&wanted, &saved.before, &left_);
  if (CPU_COUNT(&wanted) == 0) wanted = left_;
  if (CPU_COUNT(&wanted) == 0 || CPU_EQUAL(&wanted, &saved.before)) return;
  saved.is_changed = ::sched_setaffinity(0, sizeof wanted, &wanted) == 0;
}

void KeptOff::Return(Saved& saved) {
  if (saved.is_changed) ::sched_setaffinity(0, sizeof saved.before, &saved.before);
}

}  // namespace collage
