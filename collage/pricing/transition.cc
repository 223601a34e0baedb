#include "collage/pricing/transition.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "collage/cache/cache_entry.h"
#include "collage/cost/statistics.h"
#include "collage/ir/structural.h"
#include "collage/measure/barrier_probe.h"
#include "collage/measure/kernel_buffers.h"
#include "collage/measure/verification.h"
#include "collage/op/table.h"
#include "collage/runtime/parallel.h"
#include "collage/runtime/pinned_team.h"
#include "collage/support/hash.h"
#include "collage/support/log.h"

namespace collage {
namespace {

constexpr int kRounds = 61;

/// Functions of which most backends run at least one; the first that a backend runs is taken.
std::vector<Expr> Probes() {
  const auto make = [](const char* op, const TensorType& input, std::vector<Expr> more) -> Expr {
    const Expr x = MakeVar("x", input);
    more.insert(more.begin(), x);
    const Result<Expr> call = MakeCall(Operators().Find(op), std::move(more));
    return call ? *MakeFunction({x}, *call) : nullptr;
  };
  const auto weight = [](Shape shape) {
    Tensor tensor(TensorType{std::move(shape)});
    FillRandom(tensor, 1);
    return MakeConstant(tensor);
  };
  // Small enough for two kernels' buffers to stay in the caches, and work enough for every library to use all threads.
  return {make("nn.dense", TensorType{{64, 256}}, {weight({256, 256})}),
          make("nn.conv2d", TensorType{{1, 64, 16, 16}}, {weight({64, 64, 1, 1})}), make("nn.relu", TensorType{{1, 32, 32, 32}}, {})};
}

struct Probe {
  Expr function;
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Kernel> other;  ///< the same with buffers of its own, for what runs before
};

/// The first function that the backend runs and gets right.
Result<Probe> FindProbe(const TransitionBackend& backend, Pricer& pricer) {
  std::string reason = "runs none of the trivial functions";
  for (const Expr& function : Probes()) {
    if (!function) continue;
    const Function& definition = *function->As<Function>();
    const std::vector<Variant> variants = backend.backend->Variants(definition, pricer.device());
    const auto is_plain = [](const Layout& layout) { return layout.IsPlain(); };
    const auto plain = std::find_if(variants.begin(), variants.end(), [&](const Variant& variant) {
      return std::all_of(variant.inputs.begin(), variant.inputs.end(), is_plain) &&
             std::all_of(variant.outputs.begin(), variant.outputs.end(), is_plain);
    });
    if (variants.empty()) continue;
    const Variant& variant = plain == variants.end() ? variants.front() : *plain;
    const Result<double> difference = pricer.Difference({function, *backend.backend, variant, pricer.device()});
    if (!difference || *difference > kTolerance) {
      reason = difference ? "is wrong" : difference.error().message;
      continue;
    }
    Probe probe{function, nullptr, nullptr};
    for (std::unique_ptr<Kernel>* kernel : {&probe.kernel, &probe.other}) {
      Result<std::unique_ptr<Kernel>> compiled = backend.backend->Compile(definition, pricer.device(), variant);
      if (!compiled) return Fail(compiled.error());
      *kernel = std::move(*compiled);
    }
    return probe;
  }
  return Fail(reason);
}

/// A kernel with its buffers.
class Runner {
 public:
  explicit Runner(Kernel& kernel) : kernel_(kernel), buffers_(kernel) {}
  Status Run() { return buffers_.Run(kernel_); }
  Result<double> TimedRun() {
    buffers_.ReadInputs(1);  // no team between what ran before and the kernel
    return COLLAGE_TRY(buffers_.TimedRun(kernel_)).seconds;
  }

 private:
  Kernel& kernel_;
  KernelBuffers buffers_;
};

/// What may run before the kernel that is timed.
enum : size_t { kItself, kTeam, kFirstBackend };

class Session {
 public:
  Session(const std::vector<TransitionBackend>& backends, Pricer& pricer, const Progress& progress)
      : backends_(backends), pricer_(pricer), progress_(progress) {
    for (const TransitionBackend& backend : backends)
      field_ = HashCombine(field_, HashBytes(std::string(backend.backend->Name()) + " " + backend.version));
  }

  Result<TransitionCosts> Run() {
    if (!COLLAGE_TRY(FindEarlier())) {
      if (pricer_.allows_only_cached()) return Fail(NotInCache("the cost of transitions between these backends"));
      COLLAGE_TRY_STATUS(MeasureNow());
    }
    return Costs();
  }

 private:
  [[nodiscard]] MeasurementKey KeyOf(size_t to, size_t before) const {
    const TransitionBackend& backend = backends_[to];
    const std::string name = before == kItself ? "after itself"
                             : before == kTeam ? "after the OpenMP team"
                                               : "after " + std::string(backends_[before - kFirstBackend].backend->Name());
    // Not the pricer's key: transitions hold for every model, whatever its weights evict.
    const Device& device = pricer_.device();
    MeasurementKey key{field_, std::string(backend.backend->Name()), {}, name, Fingerprint(device), device.threads};
    key.fact = Fact::kTransition;
    return key;
  }

  Result<bool> FindEarlier() {
    for (size_t to = 0; to < backends_.size(); ++to) {
      samples_.emplace_back();
      for (size_t before = 0; before < backends_.size() + kFirstBackend; ++before) {
        const std::optional<Measurement> found = COLLAGE_TRY(pricer_.cache().Find(KeyOf(to, before)));
        if (!found) return false;
        samples_.back().push_back(*found);
      }
    }
    return true;
  }

  Status MeasureNow() {
    std::vector<std::optional<Probe>> probes;
    std::vector<std::optional<Runner>> timed(backends_.size());
    std::vector<std::optional<Runner>> before(backends_.size());
    samples_.assign(backends_.size(), std::vector<Measurement>(backends_.size() + kFirstBackend));
    for (size_t b = 0; b < backends_.size(); ++b) {
      progress_.Report({"measuring transitions", b + 1, backends_.size(), std::string(backends_[b].backend->Name())});
      Result<Probe> probe = FindProbe(backends_[b], pricer_);
      probes.push_back(probe ? std::optional(std::move(*probe)) : std::nullopt);
      if (probes.back()) timed[b].emplace(*probes.back()->kernel), before[b].emplace(*probes.back()->other);
      for (size_t i = 0; !probe && i < samples_[b].size(); ++i) samples_[b][i].invalid_reason = probe.error().message;
    }
    for (size_t to = 0; to < backends_.size(); ++to) {
      for (size_t from = 0; from < backends_.size(); ++from) {
        if (!before[from] && samples_[to][kFirstBackend + from].invalid_reason.empty())
          samples_[to][kFirstBackend + from].invalid_reason = "nothing of " + std::string(backends_[from].backend->Name()) + " runs";
      }
      if (timed[to]) COLLAGE_TRY_STATUS(TimeAfterEach(to, *timed[to], before));
      for (size_t i = 0; i < samples_[to].size(); ++i) COLLAGE_TRY_STATUS(pricer_.cache().Store(KeyOf(to, i), samples_[to][i]));
    }
    return {};
  }

  /// In rounds, so that the drift of the machine meets all alike; the order changes with every round.
  Status TimeAfterEach(size_t to, Runner& timed, std::vector<std::optional<Runner>>& before) {
    Status status;
    constexpr size_t kWords = 16384;
    std::vector<uint64_t> words(kWords, 1);
    // Every pool of threads is there before the team is pinned.
    COLLAGE_TRY_STATUS(timed.Run());
    for (std::optional<Runner>& other : before) {
      if (other) COLLAGE_TRY_STATUS(other->Run());
    }
    const PinnedTeam pinned(pricer_.device().threads);
    const size_t count = samples_[to].size();
    for (int round = 0; round < kRounds; ++round) {
      BarrierProbe::OfProcess(pricer_.device().threads).AwaitCalm(pricer_.patience_seconds());
      for (size_t turn = 0; turn < count; ++turn) {
        const size_t what = (turn + static_cast<size_t>(round)) % count;
        if (!samples_[to][what].invalid_reason.empty()) continue;
        // Twice, so that what ran before that has no say.
        for (int again = 0; again < 2 && status; ++again) {
          if (what == kItself) {
            status = timed.Run();
          } else if (what == kTeam) {
            ParallelFor(words.size(), 1, pricer_.device().threads, [&](size_t begin, size_t end) {
              for (size_t i = begin; i < end; i += 8) ++words[i];
            });
          } else {
            status = before[what - kFirstBackend]->Run();
          }
        }
        COLLAGE_TRY_STATUS(status);
        samples_[to][what].samples.push_back(COLLAGE_TRY(timed.TimedRun()));
      }
    }
    return {};
  }

  [[nodiscard]] TransitionCosts Costs() const {
    const size_t alone = pricer_.evicts() ? kTeam : kItself;
    TransitionCosts costs;
    costs.pairs.assign(backends_.size(), std::vector<Transition>(backends_.size()));
    for (size_t to = 0; to < backends_.size(); ++to) {
      const Measurement& base = samples_[to][alone];
      costs.backends.emplace_back(backends_[to].backend->Name());
      costs.reasons.push_back(base.invalid_reason);
      costs.alone_us.push_back(base.samples.empty() ? 0 : Percentile(base.samples, 0.5) * 1e6);
      for (size_t from = 0; from < backends_.size(); ++from)
        costs.pairs[from][to] = Compare(samples_[to][kFirstBackend + from].samples, base.samples);
    }
    return costs;
  }

  static Transition Compare(const std::vector<double>& after, const std::vector<double>& alone) {
    std::vector<double> extra;
    for (size_t round = 0; round < std::min(after.size(), alone.size()); ++round) extra.push_back((after[round] - alone[round]) * 1e6);
    if (extra.empty()) return {};
    Transition transition{Percentile(extra, 0.5), MedianHalfWidth(extra), {}};
    // What no plan hangs on would only make every price and every plan a little different on every machine.
    constexpr double kLeast = 0.5;
    if (transition.extra_us > std::max(kLeast, 2 * transition.noise_us)) transition.cost = Cost::Microseconds(transition.extra_us);
    return transition;
  }

  const std::vector<TransitionBackend>& backends_;
  Pricer& pricer_;
  const Progress& progress_;
  uint64_t field_ = 0;
  std::vector<std::vector<Measurement>> samples_;  // [to][what ran before]
};

}  // namespace

std::vector<std::vector<Cost>> TransitionCosts::Matrix() const {
  std::vector<std::vector<Cost>> matrix;
  bool all_zero = true;
  for (const std::vector<Transition>& row : pairs) {
    matrix.emplace_back();
    for (const Transition& transition : row) {
      matrix.back().push_back(transition.cost);
      all_zero = all_zero && transition.cost == Cost();
    }
  }
  if (all_zero) matrix.clear();
  return matrix;
}

Result<TransitionCosts> MeasureTransitions(const std::vector<TransitionBackend>& backends, Pricer& pricer, const Progress& progress) {
  return Session(backends, pricer, progress).Run();
}

}  // namespace collage
