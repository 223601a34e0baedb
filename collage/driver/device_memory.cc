#include "collage/driver/device_memory.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "collage/candidate/in_place.h"
#include "collage/support/memory.h"

namespace collage {
namespace {

constexpr size_t kNowhere = std::numeric_limits<size_t>::max();

/// Views of a tensor share its memory: for each tensor the first of those that do.
std::vector<size_t> SharedBy(const Placement& placement) {
  const SearchProblem& problem = placement.built.problem;
  std::vector<size_t> of(problem.tensors.size());
  std::iota(of.begin(), of.end(), size_t{0});
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    const SearchCandidate& candidate = problem.candidates[c];
    const bool is_view = !candidate.is_partition && !IsInPlace(placement.candidates[c].candidate);  // in place is only the host's memory
    // Producers stand before consumers, so what is viewed has its own root already.
    if (is_view && candidate.inputs.size() == 1 && candidate.outputs.size() == 1) of[candidate.outputs[0]] = of[candidate.inputs[0]];
  }
  return of;
}

size_t ConstantBytes(const DataflowGraph& graph, PostDfsIndex node) {
  size_t bytes = 0;
  const Call* call = graph[node].expr->As<Call>();
  if (!call) return 0;
  for (const Expr& argument : call->args) {
    if (const Constant* constant = argument->As<Constant>()) bytes += AlignedBytes(constant->value.ByteCount());
  }
  return bytes;
}

struct Life {
  size_t begin = kNowhere;
  size_t end = 0;
  size_t bytes = 0;

  void Add(size_t moment) {
    begin = std::min(begin, moment);
    end = std::max(end, moment);
  }
};

class Needs {
 public:
  Needs(const Placement& placement, const std::vector<SearchChoice>& choices)
      : placement_(placement), problem_(placement.built.problem), choices_(choices), shared_(SharedBy(placement)) {
    with_views_.resize(shared_.size());
    for (size_t tensor = 0; tensor < shared_.size(); ++tensor) with_views_[shared_[tensor]].push_back(placement_.built.tensors[tensor]);
  }

  std::vector<DeviceNeed> Find() {
    std::vector<DeviceNeed> needs(placement_.devices.size());
    for (size_t moment = 0; moment < choices_.size(); ++moment) AddKernel(moment, needs);
    KeepUntilTaken();
    for (size_t device = 1; device < needs.size(); ++device) AddWorstMoment(device, needs[device]);
    return needs;
  }

 private:
  using Form = std::pair<size_t, size_t>;  // a layout number, which says the device, and a tensor

  void AddKernel(size_t moment, std::vector<DeviceNeed>& needs) {
    const SearchCandidate& candidate = problem_.candidates[choices_[moment].candidate];
    if (!candidate.is_partition) return;
    const SearchVariant& variant = candidate.variants[choices_[moment].variant];
    const auto touch = [&](size_t tensor, size_t layout, bool makes) {
      const Form form{layout, shared_[tensor]};
      Life& life = lives_[form];
      life.Add(moment);
      life.bytes =
          std::max(life.bytes, AlignedBytes(PhysicalByteCount(placement_.built.tensor_types[tensor], placement_.built.layouts[layout])));
      if (makes) made_.push_back(form);
    };
    for (size_t i = 0; i < candidate.inputs.size(); ++i) touch(candidate.inputs[i], variant.input_layouts[i], false);
    for (size_t i = 0; i < candidate.outputs.size(); ++i) touch(candidate.outputs[i], variant.output_layouts[i], true);
    AddConstants(choices_[moment].candidate, needs);
  }

  void AddConstants(size_t candidate, std::vector<DeviceNeed>& needs) const {
    const PricedCandidate& priced = placement_.candidates[candidate];
    DeviceNeed& need = needs[placement_.MemoryOf(placement_.DeviceOf(priced.backend))];
    if (&need == &needs[0]) return;
    priced.candidate.sub_graph.inside().ForEach([&](PostDfsIndex node) {
      const size_t bytes = ConstantBytes(*placement_.formed.graph, node);
      if (bytes > 0) need.items.push_back({bytes, {}, node});
      need.bytes += bytes;
    });
  }

  /// What is wanted elsewhere stays until the first who wants it there, results until the end.
  void KeepUntilTaken() {
    std::map<size_t, std::map<size_t, size_t>> first;  // by tensor and device
    for (const auto& [form, life] : lives_) {
      size_t& moment = first[form.second].try_emplace(placement_.built.devices[form.first], kNowhere).first->second;
      moment = std::min(moment, life.begin);
    }
    for (const Form& form : made_) {
      Life& life = lives_[form];
      for (const auto& [device, moment] : first[form.second]) {
        if (device != placement_.built.devices[form.first]) life.Add(moment);
      }
    }
    std::vector<bool> holds_result(problem_.tensors.size(), false);
    for (size_t tensor = 0; tensor < problem_.tensors.size(); ++tensor) {
      if (problem_.tensors[tensor].is_result) holds_result[shared_[tensor]] = true;
    }
    for (const Form& form : made_) {
      if (holds_result[form.second]) lives_[form].Add(choices_.size());
    }
  }

  void AddWorstMoment(size_t device, DeviceNeed& need) const {
    std::vector<int64_t> changes(choices_.size() + 2, 0);
    const auto lies_there = [&](const Form& form) { return placement_.built.devices[form.first] == device; };
    for (const auto& [form, life] : lives_) {
      if (!lies_there(form)) continue;
      changes[life.begin] += static_cast<int64_t>(life.bytes);
      changes[life.end + 1] -= static_cast<int64_t>(life.bytes);
    }
    std::partial_sum(changes.begin(), changes.end(), changes.begin());
    const auto worst = std::max_element(changes.begin(), changes.end());
    need.bytes += static_cast<size_t>(*worst);
    const auto moment = static_cast<size_t>(worst - changes.begin());
    for (const auto& [form, life] : lives_) {
      if (lies_there(form) && life.begin <= moment && moment <= life.end) need.items.push_back({life.bytes, with_views_[form.second], 0});
    }
  }

  const Placement& placement_;
  const SearchProblem& problem_;
  const std::vector<SearchChoice>& choices_;
  std::vector<size_t> shared_;
  std::vector<std::vector<TensorSource>> with_views_;  // by the tensor whose memory they share
  std::map<Form, Life> lives_;
  std::vector<Form> made_;
};

std::vector<std::shared_ptr<DeviceContext>> ContextsOf(const Placement& placement) {
  std::vector<std::shared_ptr<DeviceContext>> contexts(placement.devices.size());
  for (size_t target = 0; target < placement.targets.size(); ++target) {
    const size_t device = placement.DeviceOf(target);
    if (placement.MemoryOf(device) != 0) contexts[device] = placement.targets[target].context;
  }
  return contexts;
}

/// What a plan may need of a device.
size_t MostBytes(const Placement& placement, size_t device, const DeviceContext& context) {
  return placement.kept_off.empty() ? context.memory_bytes() : std::min(context.memory_bytes(), placement.kept_off[device].most_bytes);
}

/// By how much the devices have too little; nothing where a cover fits.
std::vector<size_t> ExcessesOf(const Placement& placement, const std::vector<DeviceNeed>& needs) {
  std::vector<size_t> excesses(needs.size(), 0);
  const auto contexts = ContextsOf(placement);
  for (size_t device = 0; device < needs.size(); ++device) {
    if (!contexts[device]) continue;
    const size_t most = MostBytes(placement, device, *contexts[device]);
    excesses[device] = needs[device].bytes > most ? needs[device].bytes - most : 0;
  }
  return excesses;
}

/// Whether it was not kept off already.
bool Add(const DeviceNeed::Item& item, KeptOffDevice& off) {
  if (item.tensors.empty()) {
    const bool is_new = !off.calls.Contains(item.call);
    off.calls.Add(item.call);
    return is_new;
  }
  bool is_new = false;
  for (const TensorSource& tensor : item.tensors) is_new = off.tensors.insert(tensor).second || is_new;
  return is_new;
}

void KeepOffEnough(std::vector<DeviceNeed::Item> items, size_t excess, KeptOffDevice& off) {
  std::stable_sort(items.begin(), items.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  bool is_new = false;
  while (excess > 0 && !items.empty()) {
    auto item = std::find_if(items.begin(), items.end(), [&](const DeviceNeed::Item& of) { return of.bytes >= excess; });
    if (item == items.end()) --item;
    is_new = Add(*item, off) || is_new;
    excess -= std::min(excess, item->bytes);
    items.erase(item);
  }
  if (!is_new) off.is_whole = true;
}

}  // namespace

std::vector<DeviceNeed> NeedsOf(const Placement& placement, const std::vector<SearchChoice>& choices) {
  return Needs(placement, choices).Find();
}

bool FitsMemory(const Placement& placement, const std::vector<SearchChoice>& choices) {
  if (std::all_of(placement.devices.begin(), placement.devices.end(), [](const Device& on) { return on.kind == DeviceKind::kCpu; }))
    return true;
  const std::vector<size_t> excesses = ExcessesOf(placement, NeedsOf(placement, choices));
  return std::all_of(excesses.begin(), excesses.end(), [](size_t excess) { return excess == 0; });
}

PlacementPointer KeepOff(const Placement& placement, const Misfit& misfit) {
  auto less = std::make_shared<Placement>(placement);
  less->kept_off.resize(placement.devices.size());
  const std::vector<DeviceNeed> needs = NeedsOf(placement, misfit.choices);
  for (size_t device = 1; device < needs.size() && misfit.was_refused; ++device) {
    if (needs[device].bytes > 0) less->kept_off[device].most_bytes = needs[device].bytes - 1;
  }
  const std::vector<size_t> excesses = ExcessesOf(*less, needs);
  for (size_t device = 1; device < needs.size(); ++device) {
    if (excesses[device] > 0) KeepOffEnough(needs[device].items, excesses[device], less->kept_off[device]);
  }
  return less;
}

std::vector<std::string> DescribeKeptOff(const Placement& placement) {
  std::vector<std::string> lines;
  for (size_t device = 0; device < placement.kept_off.size(); ++device) {
    const KeptOffDevice& off = placement.kept_off[device];
    const size_t calls = off.calls.Count();
    if (!off.is_whole && off.tensors.empty() && calls == 0) continue;
    const std::string what =
        off.is_whole ? "everything"
                     : std::to_string(off.tensors.size()) + " tensors and the constants of " + std::to_string(calls) + " operators";
    lines.push_back(what + " were kept off " + ToString(placement.devices[device]) +
                    ", whose memory is too small for the cheapest plan; there may be a cheaper plan that fits");
  }
  return lines;
}

size_t RefusalsOf(const Placement& placement) {
  size_t refusals = 0;
  for (const auto& context : ContextsOf(placement)) refusals += context ? context->refusals() : 0;
  return refusals;
}

Status CheckDevices(const Placement& placement) {
  for (const auto& context : ContextsOf(placement)) {
    if (context) COLLAGE_TRY_STATUS(context->Check());
  }
  return {};
}

Result<Decision> DecideWithinMemory(PlacementPointer placement, const std::function<Result<Decision>(const PlacementPointer&)>& decide,
                                    const std::function<std::optional<Misfit>()>& misfit) {
  while (true) {
    Result<Decision> decision = decide(placement);
    std::optional<Misfit> too_large = misfit();
    if (decision && !too_large && !FitsMemory(*placement, decision->best.choices)) too_large = Misfit{decision->best.choices};
    if (!too_large) {
      if (decision || placement->kept_off.empty()) return decision;
      const std::vector<std::string> off = DescribeKeptOff(*placement);
      return off.empty() ? decision : Fail(decision.error().message + " (" + off.front() + ")");
    }
    placement = KeepOff(*placement, *too_large);
  }
}

}  // namespace collage
