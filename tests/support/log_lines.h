#pragma once

#include <spdlog/sinks/ostream_sink.h>

#include <memory>
#include <sstream>
#include <string>

#include "collage/support/log.h"

namespace collage {

/// Keeps what is logged, of all levels, as long as it lives; the log goes nowhere else then.
class LogLines {
 public:
  LogLines() : before_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_, /*force_flush=*/true));
    logger->set_level(spdlog::level::trace);
    spdlog::set_default_logger(std::move(logger));
  }
  ~LogLines() { spdlog::set_default_logger(before_); }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

  /// How often it was said.
  [[nodiscard]] size_t Count(const std::string& words) const {
    const std::string text = text_.str();
    size_t count = 0;
    for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + words.size())) ++count;
    return count;
  }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

}  // namespace collage
