#pragma once

#include <optional>
#include <string>

#include "collage/support/clock.h"
#include "collage/support/progress.h"

namespace collage::tools {

/// Shows progress events on standard error: one line that is rewritten on a terminal; elsewhere, once a
/// second has passed, a line whenever the stage changes and every ten seconds. A bar and the time left are those of the whole work where
/// that has a budget, so the most that is left; else those of the stage, by its counts and its pace.
class TerminalProgress {
 public:
  /// `budget_seconds` of the whole work, of which `spent` are gone.
  explicit TerminalProgress(std::optional<double> budget_seconds = std::nullopt, double spent = 0);
  TerminalProgress(const TerminalProgress&) = delete;
  TerminalProgress& operator=(const TerminalProgress&) = delete;
  /// Clears the line.
  ~TerminalProgress();

  void Show(const ProgressEvent& event);
  /// Clears the line, so that something else can be printed.
  void Clear();

 private:
  [[nodiscard]] std::string Describe(const ProgressEvent& event) const;

  [[nodiscard]] std::string TimeLeft(const ProgressEvent& event) const;
  [[nodiscard]] double Share(const ProgressEvent& event) const;

  bool is_terminal_;
  std::optional<double> budget_seconds_;
  double spent_;
  Clock::time_point start_ = Clock::now();
  bool line_shown_ = false;
  std::string stage_;
  Clock::time_point stage_start_;
  bool stage_shown_ = false;
  Clock::time_point last_shown_;
};

}  // namespace collage::tools
