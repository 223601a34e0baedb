#include "collage/support/clock.h"

#include <atomic>

namespace collage {
namespace {

std::atomic<Clock::Source> replaced_source = nullptr;

}  // namespace

Clock::time_point Clock::now() {
  const Source source = replaced_source.load(std::memory_order_relaxed);
  return source ? source() : std::chrono::steady_clock::now();
}

void Clock::SetSource(Source source) { replaced_source.store(source); }

}  // namespace collage
