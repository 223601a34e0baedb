// What the tests of the supervisor let it run: does what its first argument says.

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include "collage/support/supervisor.h"

namespace {

std::atomic<bool> stopped{false};

/// By the signal itself, which a sanitizer would turn into an exit code.
void Crash() {
  std::signal(SIGSEGV, SIG_DFL);
  ::raise(SIGSEGV);
}

[[noreturn]] void WaitForever() {
  while (true) ::pause();
}

}  // namespace

int main(int argc, char** argv) {
  using collage::Activity;
  const std::string what = argc > 1 ? argv[1] : "";
  std::optional<Activity> activity = Activity::OfSupervisor();
  if (!activity) return what == "alone" ? 0 : 9;
  const auto begin = [&](const char* line, uint64_t beat) { activity->now().store(beat << 32 | activity->NumberOf(line)); };
  if (what == "end") return 3;
  if (what == "echo") return argc == 3 && std::string(argv[2]) == "two words" ? 0 : 1;
  if (what == "name") {
    std::string name;
    std::getline(std::ifstream("/proc/self/comm"), name);
    return name == argv[0] ? 0 : 1;
  }
  if (what == "crash") {
    begin("the first thing", 1);
    begin("the second thing", 2);
    begin("the first thing", 3);
    Crash();
  }
  if (what == "crash idle") {
    begin("the first thing", 1);
    activity->now().store(0);
    Crash();
  }
  if (what == "hang") {
    begin("what never ends", 1);
    WaitForever();
  }
  if (what == "slow") {
    for (uint64_t beat = 1; beat <= 8; ++beat) {
      begin("what takes its time", beat);
      ::usleep(200'000);
    }
    activity->now().store(0);
    ::usleep(1'200'000);
    return 0;
  }
  if (what == "stop") {
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_IGN);
    collage::AcceptStopSignal([](int) { stopped.store(true); });
    begin("waiting", 1);
    ::kill(::getppid(), SIGINT);
    while (!stopped.load()) ::usleep(1000);
    return 4;
  }
  if (what == "stop early") {
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_IGN);
    if (argc > 2) ::kill(::getppid(), SIGINT);
    // Until the supervisor has passed it on.
    sigset_t pending;
    do {
      ::usleep(1000);
      ::sigpending(&pending);
    } while (::sigismember(&pending, collage::StopSignal()) == 0);
    collage::AcceptStopSignal([](int) { stopped.store(true); });
    return stopped.load() ? 4 : 5;
  }
  if (what == "orphan") {
    // The supervisor is gone: this process must go as well.
    ::kill(::getppid(), SIGKILL);
    ::sleep(60);
    return 0;
  }
  return 8;
}
