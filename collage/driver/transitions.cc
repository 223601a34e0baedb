#include "collage/driver/transitions.h"

#include <algorithm>

#include "collage/driver/timer.h"

namespace collage {
namespace {

/// Between devices only copies cost something: a stream takes work while the host goes on. What runs side by side is of several backends.
bool IsMeasured(const PlacementTarget& target) { return !target.is_fallback && !target.device && !target.rules.runs_side_by_side; }

}  // namespace

Result<TransitionCosts> TransitionsBetween(const std::vector<PlacementTarget>& targets, Pricer& pricer, const Progress& progress) {
  std::vector<TransitionBackend> backends;
  for (const PlacementTarget& target : targets) {
    if (IsMeasured(target)) backends.push_back({target.backend, target.version});
  }
  return MeasureTransitions(backends, pricer, progress);
}

std::vector<std::vector<Cost>> TransitionMatrix(const std::vector<PlacementTarget>& targets, const TransitionCosts& costs) {
  const std::vector<std::vector<Cost>> measured = costs.Matrix();
  if (measured.empty()) return {};
  std::vector<size_t> position(targets.size());
  size_t next = 0;
  for (size_t t = 0; t < targets.size(); ++t) {
    if (IsMeasured(targets[t])) position[t] = next++;
  }
  // Another CPU's kernels follow each other as the host's do; were that free, a search would change the CPU for it.
  std::vector<bool> has_position(targets.size());
  for (size_t t = 0; t < targets.size(); ++t) {
    const auto host = std::find_if(targets.begin(), targets.end(), [&](const PlacementTarget& target) {
      return IsMeasured(target) && target.backend == targets[t].backend;
    });
    const bool is_cpu = !targets[t].device || targets[t].device->kind == DeviceKind::kCpu;
    has_position[t] = is_cpu && host != targets.end();
    if (has_position[t]) position[t] = position[static_cast<size_t>(host - targets.begin())];
  }
  std::vector<std::vector<Cost>> matrix(targets.size(), std::vector<Cost>(targets.size()));
  for (size_t from = 0; from < targets.size(); ++from) {
    for (size_t to = 0; to < targets.size(); ++to) {
      if (has_position[from] && has_position[to]) matrix[from][to] = measured[position[from]][position[to]];
    }
  }
  return matrix;
}

Result<TransitionCosts> BackendTransitions(const std::string& path, int threads, bool evicting, const Progress& progress) {
  const Device device{DeviceKind::kCpu, 0, threads};
  const std::vector<PlacementTarget> targets = COLLAGE_TRY(ResolveTargets({}, device));
  MeasurementCache cache = COLLAGE_TRY(MeasurementCache::Open(path));
  const std::unique_ptr<KernelTimer> timer = MakeTimer(/*isolated=*/true, threads);
  MeasureOptions measure;
  if (!evicting) measure.eviction_bytes = 0;
  Pricer pricer(device, cache, measure, timer.get());
  return TransitionsBetween(targets, pricer, progress);
}

}  // namespace collage
