#pragma once

#include <atomic>

namespace collage::tools {

/// Set by the first Ctrl-C (or SIGTERM): long work ends at the next safe point with what it has. A second one ends the process.
const std::atomic<bool>& InterruptRequested();
/// A supervised process hears of it from its supervisor only: a terminal tells both.
void InstallInterruptHandler(bool is_supervised);

}  // namespace collage::tools
