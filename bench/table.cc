#include "bench/table.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <limits>
#include <sstream>

#include "collage/support/check.h"
#include "collage/support/clock.h"

namespace collage {
namespace {

double PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace

CaseApart::CaseApart(const std::function<std::vector<double>()>& run) {
  int ends[2];
  COLLAGE_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "no socket");
  process_ = fork();
  COLLAGE_CHECK(process_ >= 0, "no process");
  end_ = ends[0];
  close(process_ == 0 ? ends[0] : ends[1]);
  if (process_ != 0) return;
  const double before = PeakMegabytes();
  char question = 0;
  while (recv(ends[1], &question, 1, 0) == 1) {
    std::vector<double> answer = run();
    answer.push_back(PeakMegabytes() - before);
    if (send(ends[1], answer.data(), answer.size() * sizeof(double), MSG_NOSIGNAL) < 0) break;
  }
  _exit(0);
}

CaseApart::~CaseApart() {
  if (process_ == 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  close(end_);
}

CaseUsage CaseApart::Run() {
  send(end_, "", 1, MSG_NOSIGNAL);
  CaseUsage usage;
  usage.values.resize(16);
  const ssize_t bytes = recv(end_, usage.values.data(), usage.values.size() * sizeof(double), 0);
  COLLAGE_CHECK(bytes > 0, "a case of the benchmark died");
  usage.values.resize(static_cast<size_t>(bytes) / sizeof(double));
  usage.peak_megabytes = usage.values.back();
  usage.values.pop_back();
  return usage;
}

double SecondsOf(const std::function<void()>& run) {
  const Clock::time_point start = Clock::now();
  run();
  return Clock::SecondsSince(start);
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
