#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace collage {

/// What one case of a benchmark used.
struct CaseUsage {
  std::vector<double> values;  ///< what the case answered
  double peak_megabytes = 0;   ///< growth of the resident set since it was made
};

/// A case in a process of its own, so that neither its memory nor its caches help or harm another. It runs whenever it is asked: cases
/// that are compared can take short turns.
class CaseApart {
 public:
  /// `run` answers a few values.
  explicit CaseApart(const std::function<std::vector<double>()>& run);
  CaseApart(CaseApart&& other) noexcept : process_(std::exchange(other.process_, 0)), end_(other.end_) {}
  CaseApart& operator=(CaseApart&&) = delete;
  ~CaseApart();

  CaseUsage Run();

 private:
  int process_;
  int end_;  // of the socket to it
};
/// A case that runs once.
inline CaseUsage RunApart(const std::function<std::vector<double>()>& run) { return CaseApart(run).Run(); }

/// Seconds of one run.
double SecondsOf(const std::function<void()>& run);

/// Seconds of the fastest of `repetitions` runs; `clear` comes before each and is not timed.
double FastestOf(
    size_t repetitions, const std::function<void()>& run, const std::function<void()>& clear = [] {});

/// Prints rows as they come and remembers whether a bound was missed.
class BoundTable {
 public:
  explicit BoundTable(const std::vector<std::string>& columns);
  void Row(const std::vector<std::string>& cells);
  /// "0.123 s", with " > 2 s MISSED" behind where the bound does not hold.
  std::string Bounded(double value, double bound, const std::string& unit);
  /// 0 when every bound held, else 1.
  [[nodiscard]] int ExitCode() const { return missed_ ? 1 : 0; }

 private:
  std::vector<size_t> widths_;
  bool missed_ = false;
};

}  // namespace collage
