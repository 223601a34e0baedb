#pragma once

// Logging is spdlog's; this header exists so that the level is set in one place: COLLAGE_LOG=trace|debug|info|warn|error.

#include <spdlog/spdlog.h>

namespace collage {

/// Sends the log to standard error and sets its level from the environment variable COLLAGE_LOG (default: warn).
void InitialiseLogging();

}  // namespace collage
