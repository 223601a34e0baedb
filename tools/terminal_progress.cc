#include "tools/terminal_progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace collage::tools {
namespace {

std::string Duration(double seconds) {
  const auto whole = std::lround(seconds);
  if (whole < 60) return std::to_string(whole) + " s";
  return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
}

constexpr size_t kLineWidth = 110;
constexpr size_t kBarWidth = 20;

}  // namespace

TerminalProgress::TerminalProgress(std::optional<double> budget_seconds, double spent)
    : is_terminal_(::isatty(STDERR_FILENO) != 0), budget_seconds_(budget_seconds), spent_(spent) {}

TerminalProgress::~TerminalProgress() { Clear(); }

double TerminalProgress::Share(const ProgressEvent& event) const {
  if (budget_seconds_) return std::min(1.0, (spent_ + Clock::SecondsSince(start_)) / std::max(*budget_seconds_, 1e-9));
  return event.total == 0 ? 0 : std::min(1.0, static_cast<double>(event.done) / static_cast<double>(event.total));
}

std::string TerminalProgress::TimeLeft(const ProgressEvent& event) const {
  if (budget_seconds_) return "at most " + Duration(std::max(0.0, *budget_seconds_ - spent_ - Clock::SecondsSince(start_))) + " left";
  const double elapsed = Clock::SecondsSince(stage_start_);
  constexpr double kSecondsForAPace = 2;
  if (event.total <= event.done || event.done == 0 || elapsed <= kSecondsForAPace) return "";
  return "about " + Duration(elapsed / static_cast<double>(event.done) * static_cast<double>(event.total - event.done)) + " left";
}

std::string TerminalProgress::Describe(const ProgressEvent& event) const {
  std::string text;
  if (budget_seconds_ || event.total > 0) {
    const auto full = static_cast<size_t>(Share(event) * kBarWidth);
    text = "[" + std::string(full, '#') + std::string(kBarWidth - full, '-') + "] ";
  }
  text += event.stage;
  if (event.total > 0) {
    text += " " + std::to_string(event.done) + " of " + std::to_string(event.total);
  } else if (event.done > 0) {
    text += " " + std::to_string(event.done);
  }
  if (const std::string left = TimeLeft(event); !left.empty()) text += ", " + left;
  if (!event.detail.empty()) text += "  " + event.detail;
  if (text.size() > kLineWidth) text.resize(kLineWidth);
  return text;
}

void TerminalProgress::Show(const ProgressEvent& event) {
  const Clock::time_point now = Clock::now();
  if (event.stage != stage_) {
    stage_ = event.stage;
    stage_start_ = now;
    stage_shown_ = false;
  }
  // What ends at once, an error about a model above all, needs no lines before it.
  if (!is_terminal_ && now - start_ < std::chrono::seconds(1)) return;
  const auto pause = is_terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10'000);
  if (stage_shown_ && now - last_shown_ < pause) return;
  stage_shown_ = true;
  last_shown_ = now;
  const std::string text = Describe(event);
  std::fprintf(stderr, is_terminal_ ? "\r\033[K%s" : "%s\n", text.c_str());
  std::fflush(stderr);
  line_shown_ = is_terminal_;
}

void TerminalProgress::Clear() {
  if (line_shown_) std::fputs("\r\033[K", stderr);
  line_shown_ = false;
}

}  // namespace collage::tools
