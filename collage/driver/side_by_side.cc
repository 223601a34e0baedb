#include "collage/driver/side_by_side.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "collage/explain/plan_names.h"

namespace collage {
namespace {

// Giving a kernel to another CPU's thread, which looks for work, and seeing that it is done: an order of magnitude (some microseconds on an
// AMD Zen machine). It decides only which assignments are worth a race; the race measures.
constexpr double kSecondsOfHandover = 5e-6;

/// A choice of the plan, as something that takes time on some CPU after others.
struct Task {
  std::map<size_t, SearchChoice> on;  ///< by device: the choice that runs it there
  std::vector<size_t> after;          ///< tasks
  std::vector<size_t> before;         ///< tasks
  double rank = 0;                    ///< seconds from its start to the end of all behind it
  size_t device = 0;
  double ends = 0;
};

class Scheduler {
 public:
  Scheduler(const Placement& placement, const Plan& plan, const std::vector<Price>& prices) : placement_(placement), prices_(prices) {
    const std::vector<SearchChoice>& choices = plan.result.choices;
    std::unordered_map<size_t, size_t> maker;  // by tensor
    for (size_t i = 0; i < choices.size(); ++i) {
      tasks_.emplace_back().on.emplace(DeviceOf(choices[i]), choices[i]);
      for (const size_t tensor : Searched(choices[i]).outputs) maker.emplace(tensor, i);
    }
    for (size_t i = 0; i < choices.size(); ++i) {
      std::set<size_t> makers;
      for (const size_t tensor : Searched(choices[i]).inputs) {
        if (const auto made = maker.find(tensor); made != maker.end()) makers.insert(made->second);
      }
      tasks_[i].after.assign(makers.begin(), makers.end());
      for (const size_t from : makers) tasks_[from].before.push_back(i);
    }
    FindTwins(choices);
  }

  /// The choices, spread, in the plan's order.
  std::vector<SearchChoice> Spread() {
    std::vector<double> free_at(placement_.devices.size(), 0);
    for (const size_t number : HighestRankFirst()) {
      Task& task = tasks_[number];
      double best = 0;
      bool is_first = true;
      for (const auto& [device, choice] : task.on) {
        double start = free_at[device];
        for (const size_t from : task.after) {
          const bool is_elsewhere = tasks_[from].device != device;
          start = std::max(start, tasks_[from].ends + (is_elsewhere ? kSecondsOfHandover : 0));
        }
        const double ends = start + SecondsOf(choice);
        if (!is_first && ends >= best) continue;
        is_first = false;
        best = ends;
        task.device = device;
      }
      task.ends = best;
      free_at[task.device] = std::max(free_at[task.device], best);
      ends_ = std::max(ends_, best);
    }
    std::vector<SearchChoice> choices;
    for (const Task& task : tasks_) choices.push_back(task.on.at(task.device));
    return choices;
  }

  [[nodiscard]] double ends() const { return ends_; }

 private:
  [[nodiscard]] const SearchCandidate& Searched(const SearchChoice& choice) const {
    return placement_.built.problem.candidates[choice.candidate];
  }
  [[nodiscard]] size_t DeviceOf(const SearchChoice& choice) const {
    const PricedCandidate& candidate = placement_.candidates[choice.candidate];
    return candidate.is_partition ? placement_.DeviceOf(candidate.backend) : 0;
  }
  [[nodiscard]] double SecondsOf(const SearchChoice& choice) const {
    const size_t kernel = placement_.arms.kernel_of[choice.candidate][choice.variant];
    return kernel == Arms::kNoKernel ? 0 : prices_[kernel].centre.ToSeconds();
  }

  /// The same sub-graph by the same rule and variant on another CPU, where its price is known.
  void FindTwins(const std::vector<SearchChoice>& choices) {
    std::unordered_multimap<uint64_t, size_t> tasks;  // by what is inside
    for (size_t i = 0; i < choices.size(); ++i) {
      const bool is_on_cpu = placement_.MemoryOf(DeviceOf(choices[i])) == 0;
      const PricedCandidate& chosen = placement_.candidates[choices[i].candidate];
      if (chosen.is_partition && is_on_cpu) tasks.emplace(chosen.candidate.sub_graph.inside().Hash(), i);
    }
    for (size_t c = 0; c < placement_.candidates.size(); ++c) {
      const PricedCandidate& twin = placement_.candidates[c];
      if (!twin.is_partition || placement_.MemoryOf(placement_.DeviceOf(twin.backend)) != 0) continue;
      const auto [first, last] = tasks.equal_range(twin.candidate.sub_graph.inside().Hash());
      for (auto at = first; at != last; ++at) AddTwin(tasks_[at->second], choices[at->second], c);
    }
  }

  void AddTwin(Task& task, const SearchChoice& choice, size_t c) {
    const PricedCandidate& chosen = placement_.candidates[choice.candidate];
    const PricedCandidate& twin = placement_.candidates[c];
    const bool is_same = twin.candidate.spec == chosen.candidate.spec &&
                         placement_.NameOf(twin.backend) == placement_.NameOf(chosen.backend) &&
                         twin.candidate.sub_graph.inside() == chosen.candidate.sub_graph.inside() &&
                         twin.extracted.inputs.size() == chosen.extracted.inputs.size();
    if (!is_same) return;
    const std::string& variant = chosen.variants[choice.variant].variant.name;
    for (size_t v = 0; v < twin.variants.size(); ++v) {
      const SearchChoice other{c, v};
      const size_t kernel = placement_.arms.kernel_of[c][v];
      if (twin.variants[v].variant.name == variant && prices_[kernel].centre.IsKnown()) task.on.emplace(DeviceOf(other), other);
    }
  }

  std::vector<size_t> HighestRankFirst() {
    std::vector<size_t> missing(tasks_.size());
    std::vector<size_t> ready;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      missing[i] = tasks_[i].before.size();
      if (missing[i] == 0) ready.push_back(i);
    }
    std::vector<size_t> last_first;
    while (!ready.empty()) {
      const size_t number = ready.back();
      ready.pop_back();
      last_first.push_back(number);
      Task& task = tasks_[number];
      for (const size_t behind : task.before) task.rank = std::max(task.rank, tasks_[behind].rank);
      task.rank += SecondsOf(task.on.begin()->second);
      for (const size_t from : task.after) {
        if (--missing[from] == 0) ready.push_back(from);
      }
    }
    // A kernel of no price has the rank of what follows it, so equal ranks stay in an order in which makers come first.
    std::reverse(last_first.begin(), last_first.end());
    std::stable_sort(last_first.begin(), last_first.end(), [&](size_t a, size_t b) { return tasks_[a].rank > tasks_[b].rank; });
    return last_first;
  }

  const Placement& placement_;
  const std::vector<Price>& prices_;
  std::vector<Task> tasks_;
  double ends_ = 0;
};

}  // namespace

std::optional<Plan> SideBySide(const Placement& placement, const Plan& plan, const std::vector<Price>& prices) {
  const auto is_other_cpu = [&](size_t device) { return device > 0 && placement.MemoryOf(device) == 0; };
  bool has_other = false;
  for (size_t device = 0; device < placement.devices.size(); ++device) has_other = has_other || is_other_cpu(device);
  if (!has_other) return std::nullopt;
  Scheduler scheduler(placement, plan, prices);
  SearchResult spread = plan.result;
  spread.choices = scheduler.Spread();
  if (spread.choices == plan.result.choices || scheduler.ends() >= plan.result.cost.ToSeconds()) return std::nullopt;
  spread.cost = Cost::Seconds(scheduler.ends());
  return MakePlan(placement, kSideBySide, std::move(spread));
}

}  // namespace collage
