#include "tools/interrupt.h"

#include <csignal>

#include "collage/support/supervisor.h"

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

void InstallInterruptHandler(bool is_supervised) {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, is_supervised ? SIG_IGN : OnSignal);
  if (is_supervised) AcceptStopSignal(OnSignal);
  // Whoever starts this process may have let them wait until now.
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM}) ::sigaddset(&signals, signal);
  ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace collage::tools
