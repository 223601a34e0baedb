#pragma once

#include <string>

#include "collage/support/clock.h"
#include "collage/support/progress.h"

namespace collage::tools {

/// Shows progress events on standard error: one line that is rewritten on a terminal; elsewhere a line whenever the stage changes
/// or ten seconds have passed. Knows counts and estimates the time left from the pace of the stage.
class TerminalProgress {
 public:
  TerminalProgress();
  TerminalProgress(const TerminalProgress&) = delete;
  TerminalProgress& operator=(const TerminalProgress&) = delete;
  /// Clears the line.
  ~TerminalProgress();

  void Show(const ProgressEvent& event);
  /// Clears the line, so that something else can be printed.
  void Clear();

 private:
  [[nodiscard]] std::string Describe(const ProgressEvent& event) const;

  bool is_terminal_;
  bool line_shown_ = false;
  std::string stage_;
  Clock::time_point stage_start_;
  Clock::time_point last_shown_;
};

}  // namespace collage::tools
