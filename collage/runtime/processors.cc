#include "collage/runtime/processors.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

namespace collage {
namespace {

constexpr std::string_view kAttribute = " -processors=";

std::optional<int> ParseNumber(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && number >= 0 && number < CPU_SETSIZE ? std::optional(number) : std::nullopt;
}

}  // namespace

std::string ToText(const Processors& processors) {
  std::ostringstream text;
  for (size_t i = 0; i < processors.size();) {
    size_t last = i;
    while (last + 1 < processors.size() && processors[last + 1] == processors[last] + 1) ++last;
    text << (i > 0 ? "," : "") << processors[i];
    if (last > i) text << "-" << processors[last];
    i = last + 1;
  }
  return text.str();
}

Result<Processors> ParseProcessors(const std::string& text) {
  std::set<int> numbers;
  std::istringstream list(text);
  for (std::string range; std::getline(list, range, ',');) {
    const size_t dash = std::min(range.find('-'), range.size());
    const std::optional<int> first = ParseNumber(std::string_view(range).substr(0, dash));
    const std::optional<int> last = dash == range.size() ? first : ParseNumber(std::string_view(range).substr(dash + 1));
    if (!first || !last || *last < *first) return Fail("'" + text + "' is no list of processors, expected one such as 2-3,6");
    for (int number = *first; number <= *last; ++number) numbers.insert(number);
  }
  if (numbers.empty() || text.ends_with(',')) return Fail("'" + text + "' is no list of processors, expected one such as 2-3,6");
  return Processors(numbers.begin(), numbers.end());
}

Processors Without(const Processors& all, const Processors& others) {
  Processors left;
  std::set_difference(all.begin(), all.end(), others.begin(), others.end(), std::back_inserter(left));
  return left;
}

Processors UsableProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  Processors processors;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return processors;
  for (int number = 0; number < CPU_SETSIZE; ++number) {
    if (CPU_ISSET(static_cast<size_t>(number), &set)) processors.push_back(number);
  }
  return processors;
}

bool KeepThreadOn(const Processors& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int number : processors) CPU_SET(static_cast<size_t>(number), &set);
  return ::sched_setaffinity(0, sizeof set, &set) == 0;
}

bool CpuStatement::IsOne(const std::string& text) { return text.find(kAttribute) != std::string::npos; }

Result<CpuStatement> CpuStatement::Parse(const std::string& text) {
  const size_t at = text.find(kAttribute);
  const auto wrong = [&](const std::string& why) { return Fail("'" + text + "': " + why); };
  if (at == std::string::npos) return wrong("says no processors, expected a CPU such as cpu:1 -processors=2-3");
  const Result<Device> device = ParseDevice(text.substr(0, at), Device());
  if (!device) return wrong(device.error().message);
  if (device->kind != DeviceKind::kCpu) return wrong("only a CPU has processors");
  Result<Processors> processors = ParseProcessors(text.substr(at + kAttribute.size()));
  if (!processors) return wrong(processors.error().message);
  return CpuStatement{device->id, std::move(*processors)};
}

Result<CpuStatement> CpuStatement::ParseStated(const std::string& text) {
  const size_t equals = std::min(text.find('='), text.size());
  const Result<Device> device = ParseDevice(text.substr(0, equals), Device());
  if (!device || device->kind != DeviceKind::kCpu || equals == text.size())
    return Fail(text + ": expected a CPU and its processors, such as cpu:1=2-3");
  Result<Processors> processors = ParseProcessors(text.substr(equals + 1));
  if (!processors) return Fail(processors.error().At(text));
  return CpuStatement{device->id, std::move(*processors)};
}

std::string CpuStatement::ToString() const { return "cpu:" + std::to_string(id) + std::string(kAttribute) + ToText(processors); }

Status CheckUsable(const CpuStatement& cpu) {
  const Processors usable = UsableProcessors();
  const Processors missing = Without(cpu.processors, usable);
  if (missing.empty()) return {};
  return Fail("cpu:" + std::to_string(cpu.id) + ": processor " + ToText(missing) +
              " is not there, or this process may not use it; it may use " + ToText(usable));
}

Result<int> ThreadsBeside(const std::vector<CpuStatement>& cpus, int most) {
  Processors left = UsableProcessors();
  std::set<int> ids;
  for (const CpuStatement& cpu : cpus) {
    const std::string name = "cpu:" + std::to_string(cpu.id);
    if (cpu.id == 0) return Fail("cpu:0 is the host, which has the processors that no other CPU has; state those of cpu:1 and so on");
    if (!ids.insert(cpu.id).second) return Fail(name + ": its processors are stated twice");
    COLLAGE_TRY_STATUS(CheckUsable(cpu));
    const Processors shared = Without(cpu.processors, Without(cpu.processors, left));
    if (shared != cpu.processors) return Fail(name + ": processor " + ToText(Without(cpu.processors, shared)) + " is another CPU's, too");
    left = Without(left, cpu.processors);
  }
  if (left.empty()) return Fail("no processor is left for cpu:0, the host; this process may use " + ToText(UsableProcessors()));
  return std::min(most, static_cast<int>(left.size()));
}

}  // namespace collage
