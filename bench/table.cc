#include "bench/table.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <limits>
#include <sstream>

#include "collage/support/check.h"

namespace collage {
namespace {

double PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace

CaseUsage RunApart(const std::function<std::vector<double>()>& run) {
  int ends[2];
  COLLAGE_CHECK(pipe(ends) == 0, "no pipe");
  const pid_t child = fork();
  COLLAGE_CHECK(child >= 0, "no process");
  if (child == 0) {
    const double before = PeakMegabytes();
    std::vector<double> answer = run();
    answer.push_back(PeakMegabytes() - before);
    const auto bytes = static_cast<ssize_t>(answer.size() * sizeof(double));
    _exit(write(ends[1], answer.data(), static_cast<size_t>(bytes)) == bytes ? 0 : 1);
  }
  close(ends[1]);
  CaseUsage usage;
  double value = 0;
  while (read(ends[0], &value, sizeof value) == sizeof value) usage.values.push_back(value);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  COLLAGE_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0 && !usage.values.empty(), "a case of the benchmark died");
  usage.peak_megabytes = usage.values.back();
  usage.values.pop_back();
  return usage;
}

double SecondsOf(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double FastestOf(size_t repetitions, const std::function<void()>& run, const std::function<void()>& clear) {
  double fastest = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < repetitions; ++i) {
    clear();
    fastest = std::min(fastest, SecondsOf(run));
  }
  return fastest;
}

BoundTable::BoundTable(const std::vector<std::string>& columns) {
  for (const std::string& column : columns) widths_.push_back(std::max<size_t>(column.size(), 14));
  if (!widths_.empty()) widths_.front() = 30;
  Row(columns);
}

void BoundTable::Row(const std::vector<std::string>& cells) {
  for (size_t i = 0; i < cells.size(); ++i)
    std::cout << (i == 0 ? std::left : std::right) << std::setw(static_cast<int>(widths_[i])) << cells[i] << "  ";
  std::cout << std::endl;
}

std::string BoundTable::Bounded(double value, double bound, const std::string& unit) {
  std::ostringstream text;
  text << std::setprecision(3) << value << unit;
  if (value <= bound) return text.str();
  missed_ = true;
  text << " > " << bound << unit << " MISSED";
  return text.str();
}

}  // namespace collage
