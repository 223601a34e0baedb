// Lazy pricing on recorded prices: bench_lazy MODEL.onnx CACHE [OTHER]. The caches are of two runs of `collage compile --eager MODEL.onnx`.
// Nothing is timed: each price that a search asks for is taken from CACHE. Prints how many of the distinct candidates a lazy search asks
// for, by backend, what its plan costs beside that of a search that knows all prices, and where the two differ. Among equal kernels, that
// one takes whichever was timed at the luckiest moment, so both plans are told at the prices of OTHER too. Exits 1 when the lazy plan is
// dearer there (without OTHER: in CACHE) by more than 2%, or when more than 40% were asked for.

#include <cstdio>
#include <map>
#include <set>

#include "collage/cost/cache_maintenance.h"
#include "collage/driver/placement.h"
#include "collage/driver/timer.h"
#include "collage/ir/structural.h"
#include "collage/onnx/reader.h"
#include "collage/transform/pass.h"

namespace collage {
namespace {

/// Answers with what another compile has measured.
class RecordedTimer : public KernelTimer {
 public:
  RecordedTimer(Pricer& recorded, const std::vector<PlacementTarget>& targets) : recorded_(recorded) {
    for (const PlacementTarget& target : targets) versions_[target.priced.backend] = target.priced.version;
  }

  Result<Measurement> Measure(const KernelJob& job) override {
    const uint64_t hash = StructuralHash(job.function, ForPricing());
    const std::string name(job.backend->Name());
    functions_[name].insert(hash);
    ++variants_;
    const MeasurementKey key = recorded_.KeyOf(hash, name, versions_.at(job.backend), job.variant.name);
    std::optional<Measurement> found = COLLAGE_TRY(recorded_.Find(key));
    missing_ += found ? 0 : 1;
    return found ? std::move(*found) : Measurement{{}, "not recorded"};
  }
  Result<double> Difference(const KernelJob&) override { return 0.0; }

  [[nodiscard]] const std::map<std::string, std::set<uint64_t>>& functions() const { return functions_; }
  [[nodiscard]] size_t variants() const { return variants_; }
  [[nodiscard]] size_t missing() const { return missing_; }

 private:
  Pricer& recorded_;
  std::map<const Backend*, std::string> versions_;
  std::map<std::string, std::set<uint64_t>> functions_;  // asked for, by backend
  size_t variants_ = 0;
  size_t missing_ = 0;
};

struct Outcome {
  Plan searched;
  RecordedProblem recorded;
  std::vector<std::pair<std::string, Cost>> singles;
  CandidateCounts counts = {};
};

class Replay {
 public:
  Replay(Expr function, std::vector<PlacementTarget> targets, const MeasureOptions& measure, MeasurementCache& recorded, Device device)
      : function_(std::move(function)),
        targets_(std::move(targets)),
        measure_(measure),
        cache_(recorded),
        device_(device),
        recorded_(device, recorded, measure) {}

  Status Run(MeasurementCache* other) {
    RecordedTimer all(recorded_, targets_);
    const Outcome eager = COLLAGE_TRY(Search(all, true));
    RecordedTimer asked(recorded_, targets_);
    const Outcome lazy = COLLAGE_TRY(Search(asked, false));
    size_t measured = 0;
    std::printf("%-10s %9s %9s\n", "backend", "distinct", "asked for");
    for (const auto& [backend, functions] : all.functions()) {
      const auto at = asked.functions().find(backend);
      const size_t count = at == asked.functions().end() ? 0 : at->second.size();
      std::printf("%-10s %9zu %9zu\n", backend.c_str(), functions.size(), count);
      measured += count;
    }
    // As a compile counts them: those of the fallback are among all.
    const double share = static_cast<double>(measured) / static_cast<double>(lazy.counts.distinct);
    std::printf("%-10s %9zu %9zu (%.1f%%); variants %zu of %zu; not recorded %zu\n", "all", lazy.counts.distinct, measured, 100 * share,
                asked.variants(), all.variants(), all.missing());
    PrintDifference("only in the eager plan", eager, lazy);
    PrintDifference("only in the lazy plan", lazy, eager);
    std::printf("%-10s %12s %12s\n", "plan", "eager", "lazy");
    const double loss = Compare("searched", eager.recorded, eager, lazy);
    for (size_t i = 0; i < eager.singles.size() && i < lazy.singles.size(); ++i) {
      std::printf("%-10s %9.1f us %9.1f us\n", eager.singles[i].first.c_str(), eager.singles[i].second.ToMicroseconds(),
                  lazy.singles[i].second.ToMicroseconds());
    }
    missed_ = share > Placement::kMostMeasured;
    if (!other) {
      missed_ = missed_ || loss > kMostLoss;
      return {};
    }
    Pricer pricer(device_, *other, measure_);
    RecordedTimer there(pricer, targets_);
    const Outcome elsewhere = COLLAGE_TRY(Search(there, true));
    missed_ = missed_ || Compare("elsewhere", elsewhere.recorded, eager, lazy) > kMostLoss;
    return {};
  }
  [[nodiscard]] bool missed() const { return missed_; }

 private:
  static constexpr double kMostLoss = 0.02;
  /// As a compile does it: before plans are run.
  static constexpr double kMostQuestioned = 0.34;

  /// By how much the lazy plan is dearer, at recorded prices, as a share.
  static double Compare(const char* name, const RecordedProblem& recorded, const Outcome& eager, const Outcome& lazy) {
    const Cost all = PriceOfCover(recorded.problem, eager.searched.result.choices);
    const Cost asked = PriceOfCover(recorded.problem, lazy.searched.result.choices);
    const double loss = asked.ToSeconds() / all.ToSeconds() - 1;
    std::printf("%-10s %9.1f us %9.1f us (%+.2f%%)\n", name, all.ToMicroseconds(), asked.ToMicroseconds(), 100 * loss);
    return loss;
  }

  static Status Tell(const char* when, Placement& placement, const Plan& plan) {
    std::printf("%s: %zu measured, %.1f us, assumptions hold down to %.2f\n", when, placement.Counts().measured,
                plan.result.cost.ToMicroseconds(), COLLAGE_TRY(placement.AssumptionsHoldDownTo()));
    return {};
  }

  /// What only the first has chosen, and what the second knows of it.
  static void PrintDifference(const char* title, const Outcome& one, const Outcome& other) {
    const std::set<SearchChoice> chosen(other.searched.result.choices.begin(), other.searched.result.choices.end());
    std::printf("%s:\n", title);
    for (const SearchChoice& choice : one.searched.result.choices) {
      const SearchCandidate& candidate = one.recorded.problem.candidates[choice.candidate];
      if (chosen.contains(choice) || !candidate.is_partition) continue;
      const bool is_known = other.recorded.problem.candidates[choice.candidate].variants[choice.variant].cost.IsKnown();
      std::string operators;
      candidate.inside.ForEach([&](size_t node) { operators += " " + one.recorded.nodes[node] + ":" + one.recorded.operators[node]; });
      std::printf("  %-9s %-40s %9.1f us; there %s %9.1f us %.200s\n", one.recorded.backends[candidate.backend].c_str(),
                  one.recorded.variants[choice.candidate][choice.variant].c_str(), candidate.variants[choice.variant].cost.ToMicroseconds(),
                  is_known ? "priced" : "bound ", other.recorded.bounds[choice.candidate][choice.variant].ToMicroseconds(),
                  operators.c_str());
    }
  }

  /// A cache that knows conversions and transitions only.
  Result<MeasurementCache> WithoutKernels() {
    MeasurementCache cache = COLLAGE_TRY(MeasurementCache::Open({}));
    COLLAGE_TRY_STATUS(ForEachEntry(cache_, [&](const CacheEntry& entry) -> Status {
      const bool is_shared = entry.key.backend == "layout conversion" || entry.key.backend == kTransitionBackend;
      return is_shared ? cache.Store(entry.key, entry.measurement) : Status();
    }));
    return cache;
  }

  Result<Outcome> Search(RecordedTimer& timer, bool eager) {
    MeasurementCache cache = COLLAGE_TRY(WithoutKernels());
    Pricer pricer(device_, cache, measure_, &timer);
    const Progress progress;
    Placement placement = COLLAGE_TRY(Placement::Create(function_, targets_, pricer, progress));
    if (eager) COLLAGE_TRY_STATUS(placement.PriceEverything());
    Plan searched = COLLAGE_TRY(placement.Search());
    if (!eager) {
      COLLAGE_TRY_STATUS(Tell("as assumed", placement, searched));
      COLLAGE_TRY_STATUS(placement.QuestionAssumptions(kMostQuestioned));
      searched = COLLAGE_TRY(placement.Search());
      COLLAGE_TRY_STATUS(Tell("questioned", placement, searched));
    }
    Outcome outcome{searched, placement.Record(searched), {}};
    for (const size_t target : placement.Singles()) {
      if (const std::optional<Plan> plan = COLLAGE_TRY(placement.SearchSingle(target)))
        outcome.singles.emplace_back(plan->name, plan->result.cost);
    }
    outcome.counts = placement.Counts();
    return outcome;
  }

  Expr function_;
  std::vector<PlacementTarget> targets_;
  MeasureOptions measure_;
  MeasurementCache& cache_;
  Device device_;
  Pricer recorded_;
  bool missed_ = false;
};

Result<bool> Run(const std::filesystem::path& path, const std::filesystem::path& cache_path, const char* other_path) {
  const Device device{DeviceKind::kCpu, 0, AvailableThreads()};
  OnnxModel model = COLLAGE_TRY(ReadOnnxFile(path, {}));
  const IRModule module = COLLAGE_TRY(RunPasses(std::move(model.module), SafeGlobalPasses()));
  MeasurementCache cache = COLLAGE_TRY(MeasurementCache::Open(cache_path, MeasurementCache::Missing::kFail));
  std::optional<MeasurementCache> other;
  if (other_path) other = COLLAGE_TRY(MeasurementCache::Open(other_path, MeasurementCache::Missing::kFail));
  std::vector<PlacementTarget> targets = COLLAGE_TRY(ResolveTargets({}, device));
  Replay replay(module.MainExpr(), std::move(targets), ForModel(module.Main(), {}), cache, device);
  COLLAGE_TRY_STATUS(replay.Run(other ? &*other : nullptr));
  return !replay.missed();
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_lazy MODEL.onnx CACHE [OTHER]\n");
    return 2;
  }
  const collage::Result<bool> held = collage::Run(argv[1], argv[2], argc > 3 ? argv[3] : nullptr);
  if (!held) std::fprintf(stderr, "%s\n", held.error().message.c_str());
  return held && *held ? 0 : 1;
}
