#include <spdlog/fmt/fmt.h>

#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "collage/explain/report.h"
#include "collage/support/short_list.h"

namespace collage {
namespace {

std::string Shortened(std::string text, size_t length) {
  if (text.size() > length) text = text.substr(0, length - 3) + "...";
  return text;
}

std::string NameOf(const OperatorPlacement& placement) { return placement.nodes.empty() ? placement.name : ShortList(placement.nodes); }

/// Names in the order in which they were added, each once.
class NameList {
 public:
  void Add(const OperatorPlacement& placement) {
    if (placement.nodes.empty()) AddOne(placement.name + " (" + placement.op + ")");
    for (const std::string& node : placement.nodes) AddOne(node);
  }
  [[nodiscard]] std::string ToString() const { return CountedList(names_, "nodes"); }

 private:
  void AddOne(const std::string& name) {
    if (seen_.insert(name).second) names_.push_back(name);
  }

  std::vector<std::string> names_;
  std::unordered_set<std::string> seen_;
};

/// Who would run it otherwise, or why nobody would.
std::string RunnerUpText(const OperatorPlacement& placement, bool pinned) {
  if (pinned) return "; pinned";
  if (placement.runner_up_extra_us) return fmt::format("; runner-up {} (+{:.1f} us)", placement.runner_up, *placement.runner_up_extra_us);
  return placement.backend == "host" || placement.left_out ? "" : "; no other backend could";
}

std::string FormText(const std::string& form) { return form.empty() ? "" : " in the form " + form; }

class PartitionTexts {
 public:
  explicit PartitionTexts(const CompileReport& report) : report_(report) {
    for (const OperatorPlacement& placement : report.operators) {
      if (placement.backend == "host") {
        host_.Add(placement);
      } else {
        of_partition_[placement.symbol].push_back(&placement);
      }
      for (const Rejection& rejection : placement.rejections)
        refused_[{rejection.backend, rejection.variant, rejection.reason}].Add(placement);
    }
  }

  [[nodiscard]] std::string ToString() const {
    double total = 0;
    for (const PlanEntry& entry : report_.plan) total += entry.cost_us;
    std::string text = "partitions, with their share of the time of all kernels:\n";
    for (const PlanEntry& entry : report_.plan) {
      text += fmt::format("  {:<10} {:<22} {:>10.1f} us {:>5.1f}%  {}\n", BackendAndDevice(entry.backend, entry.device), entry.variant,
                          entry.cost_us, total > 0 ? 100 * entry.cost_us / total : 0, Inside(entry));
    }
    if (const std::string host = host_.ToString(); !host.empty()) text += "  without a kernel: " + host + "\n";
    for (const auto& [what, where] : refused_) {
      const auto& [backend, variant, reason] = what;
      text += fmt::format("  refused: {} {}: {}; for {}\n", backend, variant, Shortened(reason, 100), where.ToString());
    }
    return text;
  }

 private:
  [[nodiscard]] std::string Inside(const PlanEntry& entry) const {
    const auto found = of_partition_.find(entry.symbol);
    if (found == of_partition_.end()) return CountedList(entry.nodes.empty() ? entry.operators : entry.nodes, "nodes");
    NameList names;
    bool pinned = false;
    for (const OperatorPlacement* placement : found->second) {
      if (entry.nodes.empty()) names.Add(*placement);
      pinned = pinned || placement->pinned;
    }
    return (entry.nodes.empty() ? names.ToString() : CountedList(entry.nodes, "nodes")) + FormText(entry.form) +
           RunnerUpText(*found->second.front(), pinned);
  }

  const CompileReport& report_;
  std::unordered_map<std::string, std::vector<const OperatorPlacement*>> of_partition_;  // by symbol
  NameList host_;
  std::map<std::tuple<std::string, std::string, std::string>, NameList> refused_;
};

std::string OperatorText(const OperatorPlacement& placement) {
  std::string text =
      fmt::format("  {:<24} {:<20} {}", NameOf(placement), placement.op, BackendAndDevice(placement.backend, placement.device));
  if (!placement.variant.empty()) text += " " + placement.variant;
  if (placement.backend != "host") {
    text += fmt::format("  {:.1f} us", placement.cost_us);
    if (placement.sharers > 1) text += fmt::format(" (with {} others: {})", placement.sharers - 1, Shortened(placement.symbol, 60));
  }
  text += FormText(placement.form) + RunnerUpText(placement, placement.pinned) + "\n";
  for (const Rejection& rejection : placement.rejections) {
    text += fmt::format("             refused: {} {}: {}\n", rejection.backend, rejection.variant, Shortened(rejection.reason, 100));
  }
  return text;
}

}  // namespace

std::string ExplanationText(const CompileReport& report, ExplanationDetail detail) {
  std::string profiles;
  for (const CompileReport& profile : report.profiles)
    profiles += "profile " + ProfileName(profile) + "\n" + ExplanationText(profile, detail);
  if (!report.profiles.empty()) return profiles;
  if (detail == ExplanationDetail::kPartitions) return PlanTable(report) + PartitionTexts(report).ToString();
  std::string text = PlanTable(report) + "operators:\n";
  for (const OperatorPlacement& placement : report.operators) text += OperatorText(placement);
  return text;
}

}  // namespace collage
