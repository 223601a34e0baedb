#pragma once

#include <sched.h>

#include <memory>

#include "collage/runtime/processors.h"

namespace collage {

/// Processors that the host's team leaves to other CPUs while a program runs: the calling thread and the threads of its team stay off
/// them between Begin and End, and then may run where they could before. A thread that may run on those alone gets what is left of what
/// the maker of this could use; where that is nothing, it stays as it is. Begin and End cost two system calls a thread, and a parallel
/// region where the team has several. Nothing is allocated.
class KeptOff {
 public:
  KeptOff(int threads, const Processors& processors);

  void Begin();
  void End();

 private:
  struct Saved {
    bool is_changed = false;
    cpu_set_t before;
  };
  void OfEachThread(void (KeptOff::*change)(Saved&));
  void Leave(Saved& saved);
  void Return(Saved& saved);

  int threads_;
  cpu_set_t left_;                  // to the host
  std::unique_ptr<Saved[]> saved_;  // one a thread of the team
};

}  // namespace collage
