#include "collage/support/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>

#include <cstdlib>

namespace collage {

void InitialiseLogging() {
  auto logger = spdlog::stderr_color_mt("collage");
  const char* level = std::getenv("COLLAGE_LOG");
  logger->set_level(level ? spdlog::level::from_str(level) : spdlog::level::warn);
  logger->set_pattern("%^%l%$: %v");
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace collage
