#pragma once

// The whole of Collage in one call: model in, raced and verified program out. compile_function.cc reads as the table of contents.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collage/candidate/gather.h"
#include "collage/cost/statistics.h"
#include "collage/driver/constraints.h"
#include "collage/driver/estimator.h"
#include "collage/explain/report.h"
#include "collage/ir/module.h"
#include "collage/lower/lower.h"
#include "collage/measure/measure_kernel.h"
#include "collage/runtime/device.h"
#include "collage/runtime/processors.h"
#include "collage/support/progress.h"
#include "collage/support/result.h"
#include "collage/support/supervisor.h"
#include "collage/tensor/precision.h"

namespace collage {

using InputShapes = std::map<std::string, Shape>;

struct CompileOptions {
  /// The .npz archive with the constants of a program in Relay's text (relay_program.h); empty: the one beside the program, if any.
  std::filesystem::path constants = {};
  /// "cpu" (native code), "cpu -compiler=dnnl", ...; empty: everything that is present.
  std::vector<std::string> targets;
  /// Where operators must and must not run; errors name the flag, the node and the backend.
  UserConstraints constraints;
  /// Rules that "-partition_rule=NAME" of a target may name; what they find is taken as it is, nothing is added.
  StatedRules partition_rules;
  /// A user's rules for equivalent forms (StatedForm), looked for beside those of Collage.
  std::vector<FormRule> forms = {};
  /// The searcher that chooses the cover among what is priced (search/searcher.h). One that is not exact asks for every price, and the
  /// evolutionary one has half of the time for measuring whole plans.
  std::string search = kUsualSearch;
  static constexpr const char* kUsualSearch = "sweep";
  /// In which kernels may compute beside float32: their own variants, chosen where they are faster. The whole program is compared with the
  /// float32 reference, to this tolerance where a kernel uses the permit. Nothing: all is float32.
  std::optional<Precision> precision = {};
  /// Prices in place of measurements: with it nothing is timed, and neither the cache nor a race says anything. Empty: kernels are
  /// measured.
  CostEstimator estimator;
  /// One for each profile of the program: shapes of inputs by name, for those that the model leaves symbolic.
  std::vector<InputShapes> profiles = {{}};
  /// The search chooses the device of everything that nothing fixes; else that lies where device planning has it, by default on the host.
  bool choose_devices = false;
  int threads = AvailableThreads();
  /// CPUs beside the host, cpu:1 and so on, with processors of their own. The host has those that are left, and at most so many threads.
  std::vector<CpuStatement> cpus;
  /// Where prices are kept, as MeasurementCache::Open takes it; empty: in memory only. In that of a server the kernels are timed by the
  /// workers of this kind of machine, as long as there are any (fleet/fleet.h).
  std::string cache;
  MeasureOptions measure;
  /// How sure statements have to be and which difference matters; every decision follows.
  Declared declared;
  /// Seconds for the whole compile; then the best plan of what was measured by then is taken. What a plan cannot do without is measured
  /// nevertheless.
  double budget_seconds = kUsualBudget;
  /// Five minutes: what people wait for.
  static constexpr double kUsualBudget = 300;
  /// Of the compile of which this is a part, whose own budget is a share of what was left when it began. Nothing: it is no part.
  std::optional<double> whole_budget_seconds = {};
  [[nodiscard]] double WholeBudget() const { return whole_budget_seconds.value_or(budget_seconds); }
  /// Seconds that an earlier process has spent on this very compile before it crashed; a budget counts them.
  double seconds_spent = 0;
  /// Nothing is measured: whatever is not in the cache is an error that says what it is.
  bool cache_only = false;
  /// Every candidate is priced, instead of those only that can be part of the cheapest plan by what is assumed of the others.
  bool eager = false;
  /// Raises the priority of the whole terminal session, not only that of the compile's own processes.
  bool exclusive = false;
  /// Seconds for tuning the schedules of generated kernels before they are priced in context. What earlier compiles have tuned is used in
  /// any case.
  double tuning_seconds = 0;
  /// Seconds kept for the end-to-end race of the final plans: what sixteen plans take in the fewest rounds that can tell, in turns that
  /// fill caches (RaceOptions).
  double race_seconds = 12;
  /// Where the program is saved; empty: nowhere.
  std::filesystem::path output;
  /// A folder: the plan of each single backend is saved there as well, as NAME.collage. Empty: they are not kept.
  std::filesystem::path single_backends;
  /// Kernels are compiled and timed in a worker process, so that one which crashes or hangs is Invalid and nothing worse.
  bool isolated = true;
  /// Where whole plans say which of their kernels runs (plan_watch.h), for a supervisor that outlives a crash of theirs. Null: nowhere.
  Activity* activity = nullptr;
  Progress progress;
};

struct CompiledModel {
  LoweredModel lowered;
  CompileReport report;
  std::string metadata;  ///< for SaveProgram: the report, as far as it is the same of every compile, and all prices known
};

/// Compiles a model file (model_file.h). Errors are of the model, the targets, the cache or the output file, and say which. A stop request
/// while measuring ends the search with what has been priced so far.
Result<CompiledModel> CompileModel(const std::filesystem::path& model, const CompileOptions& options);

/// A function partitioned as measuring found best, without a race of whole plans.
struct PlacedFunction {
  IRModule module;
  std::string plan;  ///< as text from which phase 4 runs alone (LoadPlan, ApplyCover)
  CompileReport report;
};
Result<PlacedFunction> PlaceFunction(const Expr& function, const CompileOptions& options);

}  // namespace collage
