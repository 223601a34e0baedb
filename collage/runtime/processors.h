#pragma once

#include <compare>
#include <string>
#include <vector>

#include "collage/runtime/device.h"
#include "collage/support/result.h"

namespace collage {

/// Processors by the numbers that the operating system gives them, ascending, each once.
using Processors = std::vector<int>;

/// "2-3,6".
std::string ToText(const Processors& processors);
/// The reverse. Errors quote a list that cannot be read or is empty.
Result<Processors> ParseProcessors(const std::string& text);
/// Those of `all` that are not in `others`.
Processors Without(const Processors& all, const Processors& others);

/// That the calling thread may use.
Processors UsableProcessors();
/// The calling thread runs on these alone from now on, and so do threads that it starts. False where the system says no.
bool KeepThreadOn(const Processors& processors);

/// A CPU and its processors, written as a target is: "cpu:1 -processors=2-3,6".
struct CpuStatement {
  int id = 0;
  Processors processors;

  /// Whether a text states processors at all; "opencl:0" does not.
  static bool IsOne(const std::string& text);
  /// Errors quote what cannot be read.
  static Result<CpuStatement> Parse(const std::string& text);
  /// As users state it: "cpu:1=2-3,6". Errors begin with the text.
  static Result<CpuStatement> ParseStated(const std::string& text);
  [[nodiscard]] std::string ToString() const;
  /// As many threads as processors.
  [[nodiscard]] Device ToDevice() const { return {DeviceKind::kCpu, id, static_cast<int>(processors.size())}; }

  friend auto operator<=>(const CpuStatement&, const CpuStatement&) = default;
};

/// Error: which of its processors the calling thread may not use, and which it may.
Status CheckUsable(const CpuStatement& cpu);
/// How many threads the host's team may have beside other CPUs: `most`, or as many as processors are left. Errors: a processor that is not
/// there or is that of two CPUs, two CPUs of one number, none left for cpu:0, or that number.
Result<int> ThreadsBeside(const std::vector<CpuStatement>& cpus, int most);

}  // namespace collage
