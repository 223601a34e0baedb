#include "tools/interrupt.h"

#include <csignal>

namespace collage::tools {
namespace {

std::atomic<bool> requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "written by a signal handler");

void OnSignal(int signal) {
  requested.store(true, std::memory_order_relaxed);
  std::signal(signal, SIG_DFL);
}

}  // namespace

const std::atomic<bool>& InterruptRequested() { return requested; }

void InstallInterruptHandler() {
  std::signal(SIGINT, OnSignal);
  std::signal(SIGTERM, OnSignal);
}

}  // namespace collage::tools
