#include "collage/driver/compile_control.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "collage/backend/host_reference_team.h"
#include "collage/cost/statistics.h"
#include "collage/driver/compared_inputs.h"
#include "collage/driver/control_report.h"
#include "collage/driver/kernel_work.h"
#include "collage/driver/part_options.h"
#include "collage/ir/call_work.h"
#include "collage/ir/structural.h"
#include "collage/ir/visit.h"
#include "collage/lower/control.h"
#include "collage/measure/rounding_excuse.h"
#include "collage/op/interpreter.h"
#include "collage/op/rounding_effect.h"
#include "collage/pricing/pricer.h"
#include "collage/support/hash.h"
#include "collage/support/log.h"
#include "collage/tensor/agreement.h"

namespace collage {
namespace {

const std::vector<std::string> kReferenceTargets = {"cpu -compiler=reference"};
constexpr uint64_t kSeed = 1;   // any
constexpr size_t kSamples = 4;  // so that several branches are met
// Of the budget, for the reference executor: loops that wait for data may never end on random inputs.
constexpr double kShareOfReference = 0.05;
/// The least time a call could take: only proportions matter.
double LeastSeconds(const Expr& expr, const DeviceLimits& limits) {
  const Work work = WorkOfCall(expr);
  return std::max(work.flops / limits.flops_per_second, work.bytes / limits.bytes_per_second);
}

bool IsFinite(const Tensor& tensor) {
  if (!IsFloatingPoint(tensor.dtype())) return true;
  const std::vector<double> values = tensor.ToDouble();
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

class ControlCompile {
 public:
  ControlCompile(const OnnxModel& model, const IRModule& outlined, const std::string& name, const CompileOptions& options,
                 MeasurementCache& cache, const CompileBlock& compile_block)
      : model_(model), outlined_(outlined), name_(name), options_(options), cache_(cache), compile_block_(compile_block) {}

  Result<CompiledModel> Run() {
    if (!options_.single_backends.empty()) return Fail("--single-backends: a program with control flow has no plans of single backends");
    control_ = COLLAGE_TRY(ToControlProgram(outlined_));
    for (const ControlProgram::Function& function : control_.program.functions) {
      if (!function.failure.empty()) spdlog::warn("a run may fail: {}", function.failure);
    }
    RunReference();
    LoweredModel whole = COLLAGE_TRY(CompileWhole());
    CompileReport report = ReportOfControl(name_, options_, reports_);
    report.winner = taken_;
    report.missing.insert(report.missing.begin(), refused_.begin(), refused_.end());
    report.not_compared = not_compared_.empty() ? report.not_compared : not_compared_;
    report.rounding = rounding_.empty() ? report.rounding : rounding_;
    report.remainder = model_.remainder ? model_.remainder->Summary() : "";
    COLLAGE_TRY_STATUS(TimeWhole(whole.executable, report));
    report.elapsed_seconds = SecondsSpent();
    for (const auto& [input, type] : whole.executable.inputs()) report.inputs.emplace_back(input, type.shape);
    std::string metadata = ToJson(OfEveryCompile(report));
    return CompiledModel{std::move(whole), std::move(report), std::move(metadata)};
  }

 private:
  /// Runs it on random inputs, notes what it makes of them and how much work it does in which block.
  void RunReference() {
    struct Place {
      size_t block;
      double seconds;
    };
    std::unordered_map<const ExprNode*, Place> places;
    const DeviceLimits limits = LimitsOf({DeviceKind::kCpu, 0, options_.threads});
    for (size_t i = 0; i < control_.blocks.size(); ++i) {
      PostOrder(outlined_.Find(control_.blocks[i]), [&](const Expr& expr) {
        if (CalledOp(expr)) places.emplace(expr.get(), Place{i, LeastSeconds(expr, limits)});
      });
    }
    work_.assign(control_.blocks.size(), 0);
    const std::vector<std::vector<Tensor>> compared_with = ComparedWith(outlined_);
    const Clock::time_point end = Clock::After(kShareOfReference * options_.budget_seconds);
    for (uint64_t seed = 0; seed < kSamples; ++seed) {
      // Comparisons of what is no number may go either way in a kernel, and a loop that waits for one may not end.
      bool finite = true;
      InterpreterOptions interpreter;
      interpreter.should_stop = [&] { return !finite || options_.progress.ShouldStop() || Clock::now() >= end; };
      interpreter.on_operator = [&](const Expr& expr, std::span<const Tensor> outputs) {
        finite = finite && std::all_of(outputs.begin(), outputs.end(), IsFinite);
        const auto place = places.find(expr.get());
        if (place != places.end()) work_[place->second.block] += place->second.seconds;
      };
      options_.progress.Report({"running the reference", seed, kSamples, {}});
      std::vector<Tensor> inputs;
      for (const Expr& parameter : outlined_.Main().parameters) {
        for (const TensorType& type : FlattenTensors(parameter->type())) {
          const std::vector<Tensor>& numbers = compared_with[inputs.size()];
          const size_t chosen = seed % (numbers.size() + 1);
          FillRandom(inputs.emplace_back(type), kSeed + 100 * seed + inputs.size());
          if (chosen < numbers.size()) inputs.back() = numbers[chosen];
        }
      }
      const HostReferenceTeam team(options_.threads);
      Result<std::vector<Tensor>> expected = InterpretMain(outlined_, inputs, interpreter);
      if (expected && finite) samples_.push_back({std::move(inputs), std::move(*expected), {}});
    }
    if (samples_.empty())
      not_compared_ =
          "the whole program: on random inputs the reference executor did not end in time, met what is no finite number, or took a branch "
          "that does not fit";
  }

  /// The blocks joined. Each may be right on numbers of its own and the whole wrong on those that the blocks hand on, where sums cancel,
  /// say. Which block it is, or whether any, nobody knows; so all do without the permitted precision then, or are of the reference kernels.
  Result<LoweredModel> CompileWhole() {
    CompileOptions options = options_;
    while (true) {
      Result<LoweredModel> whole = CompileOn(options);
      if (!whole && !refused_.empty()) return Fail(whole.error().At("the program " + refused_.back().reason + "; compiled again"));
      if (!whole) return whole;
      const std::string objection = COLLAGE_TRY(ObjectionTo(whole->executable));
      if (objection.empty()) return whole;
      if (options.targets == kReferenceTargets) return Fail("the program " + objection);
      refused_.push_back({taken_, objection});
      if (UsesPrecision()) {
        options.precision.reset();
        taken_ = "searched in float32, block by block";
      } else {
        options.targets = kReferenceTargets;
        taken_ = "reference, block by block";
      }
      spdlog::warn("the program {}: it is compiled again ({})", objection, taken_);
    }
  }

  Result<LoweredModel> CompileOn(const CompileOptions& options) {
    blocks_.clear();
    reports_.clear();
    COLLAGE_TRY_STATUS(CompileBlocks(options));
    const Device device{DeviceKind::kCpu, 0, options_.threads};
    return JoinBlocks(control_.program, std::move(blocks_), model_.input_names, model_.output_names, device);
  }

  /// As `of_whole` says, apart from the time, of which the reference executor has had some.
  Status CompileBlocks(const CompileOptions& of_whole) {
    std::vector<CompiledPart> parts;
    for (size_t i = 0; i < control_.blocks.size(); ++i) parts.push_back({{outlined_.Find(control_.blocks[i])}, work_[i]});
    CompileOptions options = of_whole;
    options.seconds_spent = SecondsSpent();
    PartOptions of_blocks(options, parts, parts.size() - 1);
    for (size_t i = 0; i < control_.blocks.size(); ++i) {
      options_.progress.Report({"block", i + 1, control_.blocks.size(), control_.blocks[i]});
      Result<CompiledModel> compiled = compile_block_(parts[i].functions[0], of_blocks.Begin(i));
      if (!compiled) return Fail(compiled.error().At("@" + control_.blocks[i]));
      blocks_.push_back(std::move(compiled->lowered));
      reports_.push_back({control_.blocks[i], std::move(compiled->report)});
    }
    return {};
  }

  [[nodiscard]] double SecondsSpent() const { return options_.seconds_spent + Clock::SecondsSince(start_); }

  [[nodiscard]] bool UsesPrecision() const {
    return std::any_of(reports_.begin(), reports_.end(),
                       [](const BlockReport& block) { return block.report.precision && block.report.precision->taken > 0; });
  }

  [[nodiscard]] bool IsStopped() const { return options_.progress.stop_requested && options_.progress.stop_requested->load(); }

  /// By rounding, each block having been compared by itself.
  Result<bool> IsExcused(std::span<const Tensor> outputs, const ReferenceSample& sample, double tolerance) {
    options_.progress.Report({"running the reference with rounding", 0, 0, {}});
    const auto run = [this](const std::vector<Tensor>& inputs, const InterpreterOptions& rounded) {
      const HostReferenceTeam team(options_.threads);
      return InterpretMain(outlined_, inputs, rounded);
    };
    RoundingEffect rounding(run, sample, kSeed);
    const std::optional<RoundingExcuse> excuse =
        COLLAGE_TRY(RoundingExcuse::Find(outputs, sample, rounding, tolerance, [this] { return IsStopped(); }));
    if (excuse) rounding_ = excuse->Text();
    return excuse.has_value();
  }

  /// Empty where nothing speaks against the program.
  Result<std::string> ObjectionTo(Executable& executable) {
    difference_.reset();
    for (const ReferenceSample& sample : samples_) {
      const std::vector<Tensor> outputs = COLLAGE_TRY(executable.Run(sample.inputs));
      double tolerance = UsesPrecision() ? std::max(kTolerance, options_.precision->tolerance) : kTolerance;
      for (const NamedType& output : executable.outputs()) tolerance = std::max(tolerance, Tolerance(output.type.dtype));
      const Agreement agreement = Compare(outputs, sample.expected);
      if (!IsComparison(agreement) && agreement.unequal == 0) continue;
      if (!Passes(agreement, tolerance) && !COLLAGE_TRY(IsExcused(outputs, sample, tolerance)))
        return Objection(agreement, tolerance) + ", although each of its blocks agrees" +
               (UsesPrecision() ? "; permit " + NameOf(*options_.precision) + " with a larger tolerance, or not at all" : "");
      difference_ = std::max(difference_.value_or(0), agreement.difference);
    }
    if (!samples_.empty() && !difference_) not_compared_ = "the whole program: on random inputs its outputs are not finite";
    return std::string();
  }

  /// The program: its functions, and who runs what in them.
  [[nodiscard]] MeasurementKey KeyOfWhole(const CompileReport& report) const {
    uint64_t hash = StructuralHash(outlined_, ForPricing());
    for (const PlanEntry& entry : report.plan) {
      for (const std::string* part : {&entry.symbol, &entry.backend, &entry.variant}) hash = HashCombine(hash, HashBytes(*part));
    }
    const Pricer pricer({DeviceKind::kCpu, 0, options_.threads}, cache_, {});
    MeasurementKey key = pricer.KeyOf(Fact::kRace, hash);
    key.variant = "whole";
    return key;
  }

  Status TimeWhole(Executable& executable, CompileReport& report) {
    if (samples_.empty() || options_.estimator) return {};
    const MeasurementKey key = KeyOfWhole(report);
    std::optional<Measurement> known = COLLAGE_TRY(cache_.Find(key));
    if (!known && options_.cache_only) return {};
    if (!known) {
      known = Measurement{COLLAGE_TRY(SecondsOf(executable)), {}, {}};
      COLLAGE_TRY_STATUS(cache_.Store(key, *known));
      report.raced = true;
    }
    report.end_to_end.push_back({"chosen", Median(known->samples) * 1e3, 1, difference_});
    return {};
  }

  Result<std::vector<double>> SecondsOf(Executable& executable) {
    std::vector<Tensor> outputs;
    for (const NamedType& output : executable.outputs()) outputs.emplace_back(output.type);
    std::vector<double> seconds;
    constexpr double kMostSeconds = 1;  // there is nobody to be told apart from
    const Clock::time_point end = Clock::After(std::min(kMostSeconds, options_.race_seconds));
    while (seconds.empty() || (Clock::now() < end && !options_.progress.ShouldStop())) {
      const Clock::time_point start = Clock::now();
      COLLAGE_TRY_STATUS(executable.Run(samples_[0].inputs, outputs));
      seconds.push_back(std::max(Clock::SecondsSince(start), 1e-9));  // what the clock cannot tell from nothing
    }
    return seconds;
  }

  const OnnxModel& model_;
  const IRModule& outlined_;
  const std::string& name_;
  const CompileOptions& options_;
  MeasurementCache& cache_;
  const CompileBlock& compile_block_;
  Clock::time_point start_ = Clock::now();
  ControlOfModule control_;
  std::vector<ReferenceSample> samples_;  // random inputs, as far as the reference executor ends on them
  std::vector<double> work_;              // of each block, roughly in seconds
  std::vector<LoweredModel> blocks_;
  std::vector<BlockReport> reports_;
  std::optional<double> difference_;
  std::string not_compared_;
  std::string taken_ = "searched, block by block";
  std::vector<MissingPlan> refused_;
  std::string rounding_;  // what excuses how far the whole is from the reference; empty where nothing has to
};

}  // namespace

Result<CompiledModel> CompileControl(const OnnxModel& model, const IRModule& outlined, const std::string& name,
                                     const CompileOptions& options, MeasurementCache& cache, const CompileBlock& compile_block) {
  return ControlCompile(model, outlined, name, options, cache, compile_block).Run();
}

}  // namespace collage
