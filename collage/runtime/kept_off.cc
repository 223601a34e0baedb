#include "collage/runtime/kept_off.h"

#include "collage/runtime/parallel.h"

namespace collage {

KeptOff::KeptOff(int threads, const Processors& processors) : threads_(threads), saved_(new Saved[static_cast<size_t>(threads)]) {
  CPU_ZERO(&others_);
  for (const int number : processors) CPU_SET(static_cast<size_t>(number), &others_);
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
  cpu_set_t both;
  CPU_AND(&both, &saved.before, &others_);
  cpu_set_t left;
  CPU_XOR(&left, &saved.before, &both);
  if (CPU_COUNT(&both) == 0 || CPU_COUNT(&left) == 0) return;
  saved.is_changed = ::sched_setaffinity(0, sizeof left, &left) == 0;
}

void KeptOff::Return(Saved& saved) {
  if (saved.is_changed) ::sched_setaffinity(0, sizeof saved.before, &saved.before);
}

}  // namespace collage
