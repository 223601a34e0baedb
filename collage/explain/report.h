#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "collage/support/result.h"
#include "collage/tensor/tensor_type.h"

namespace collage {

/// What a kernel has to do, whoever runs it.
struct PlanWork {
  double flops = 0;        ///< of its convolutions and products, by their definitions; zero where it has none
  double bytes = 0;        ///< of its parameters, weights among them, and of its results
  double roofline_us = 0;  ///< no kernel of this work takes less
};

/// One kernel of the chosen plan.
struct PlanEntry {
  std::string symbol;
  std::string backend;
  std::string variant;
  std::vector<std::string> operators;
  double cost_us = 0;
  /// Decision margin: by how much the best plan without this partition would be dearer, at the prices known. Below zero where an
  /// alternative was priced alone only and looked better than what was tried. Nothing when there is no other plan.
  std::optional<double> margin_us = {};
  /// ONNX nodes that it computes, in the model's order. Empty where no model was read, and in files of before.
  std::vector<std::string> nodes = {};
  std::string device = {};            ///< "opencl:0"; empty: the host
  std::string form = {};              ///< rule of the form that it computes, wholly or in part; empty: what the model says
  std::optional<PlanWork> work = {};  ///< nothing in files of before
  std::string precision = {};         ///< "bf16"; empty: that of the model
};

/// A whole plan timed end to end against the others of the same race.
struct PlanTiming {
  std::string name;  ///< "chosen", one of plan_names.h, or the backend that it uses alone
  double median_ms = 0;
  double ratio = 1;  ///< median over rounds of its time divided by the chosen plan's
  /// Largest difference of an output from the reference executor, relative to the largest value.
  std::optional<double> difference;
};

/// A plan of a single backend that did not race.
struct MissingPlan {
  std::string name;
  std::string reason;
};

struct CandidateCounts {
  size_t found = 0;     ///< candidates of all rules
  size_t distinct = 0;  ///< different (function, backend) pairs among them
  size_t measured = 0;  ///< those of which a variant has a price
  size_t rejected = 0;  ///< variants that could not be compiled or run, or were found wrong
  struct Variants {
    size_t measured = 0;  ///< timed in this compile
    size_t cached = 0;    ///< whose price was in the cache; later ones than an earlier decision are not looked at
    size_t unpriced = 0;  ///< that a lower bound kept off every cheapest path
    size_t assumed = 0;   ///< of these, the ones whose bound is more than the proved one of the roofline
    size_t too_long = 0;  ///< of these, the ones left out in this compile: likely to take longer to compile than its budget
  } variants;
};

/// A variant that was refused, and why.
struct Rejection {
  std::string backend;
  std::string variant;
  std::string reason;
};

/// What became of one operator.
struct OperatorPlacement {
  std::string name;  ///< as the text form numbers it: "%12"
  std::string op;
  std::string backend;  ///< "host" for what needs no kernel
  std::string variant;
  std::string symbol;     ///< of the partition that holds it
  double cost_us = 0;     ///< of that partition
  size_t sharers = 1;     ///< operators in that partition
  std::string runner_up;  ///< backend and variant that would hold it if its own were forbidden here; empty when there is none
  std::optional<double> runner_up_extra_us;  ///< by how much the whole plan would be dearer
  std::vector<Rejection> rejections;
  bool pinned = false;                  ///< to its backend by the user
  bool left_out = false;                ///< no runner-up was looked for: see CompileReport::decisions_left_out
  std::vector<std::string> nodes = {};  ///< of the ONNX model that it comes from
  std::string device = {};              ///< "opencl:0"; empty: the host
  std::string form = {};                ///< rule of the form that it is of; such a one stands in the place of the nodes' own
};

/// "opencl@opencl:0"; of the host the backend alone.
std::string BackendAndDevice(const std::string& backend, const std::string& device);

/// The cheapest plan, where one of fewer partitions was taken whose estimate cannot be told from it.
struct ReportedTie {
  double within;      ///< share of the cost: the noise floor when prices were taken
  size_t partitions;  ///< of the cheapest plan
  double cost_us;
};

/// What the user permitted beside float32, and what became of it. How far the program is from the reference, its timing says.
struct ReportedPrecision {
  std::string name;      ///< "bf16"
  double tolerance = 0;  ///< declared
  size_t offered = 0;    ///< kernels that would use it, of all backends
  size_t taken = 0;      ///< partitions of the plan whose kernel does
};

/// Of one program. That of several profiles has a report for each of them, and sums up counts and seconds; of the rest only model and
/// threads are set.
struct CompileReport {
  std::string model;
  int threads = 1;
  std::string searcher = "sweep";    ///< by which the plan called "searched" was chosen
  std::vector<std::string> pins;     ///< as the user wrote them
  std::vector<std::string> forbids;  ///< as the user wrote them
  std::vector<PlanEntry> plan;
  /// Kernels, conversions and transitions, at the speed that the machine had during the race: it is there to be compared with the race's
  /// times. All other predictions are as the prices say, and so is what people are shown: EstimateAtPrices.
  double estimated_us = 0;
  /// How many times slower the machine was during the race than when the prices in the plan were taken, by a plan that ran at both times.
  double drift = 1;
  /// No cover of the candidates is cheaper at the measured prices and what is assumed of those that were not measured (PriceBounds). A
  /// plan that won the race without being the searched one may be estimated above it.
  double lower_bound_us = 0;
  /// The same with nothing assumed: what was not measured takes no less than its roofline.
  double proved_lower_bound_us = 0;
  /// Whether, at the declared confidence, no cover is cheaper by more than the smallest difference worth having.
  bool search_complete = true;
  double confidence = 0.95;           ///< as declared
  double smallest_difference = 0.01;  ///< as declared, a share
  /// The greatest share by which some cover might still be cheaper, at that confidence.
  double open = 0;
  std::vector<MissingPlan> missing = {};  ///< plans that did not race, or are not right
  std::string not_compared = {};          ///< what of the program was not compared with the reference, and why; empty: all was
  /// How far rounding alone takes the reference from itself, where only that excuses how far the program is from it; else empty.
  std::string rounding = {};
  std::vector<std::string> stated_forms = {};  ///< what became of users' rules for forms, a sentence each
  std::vector<std::string> kept_off = {};      ///< what was kept off devices whose memory is too small, a sentence each
  std::string remainder = {};                  ///< what of the model runs behind the plan on the reference kernels, and why; empty: nothing
  std::optional<ReportedTie> tie;
  std::optional<ReportedPrecision> precision = {};  ///< nothing: all is float32
  bool is_estimated = false;                        ///< prices are a user's estimates: nothing was timed
  std::vector<std::string> timed_here = {};         ///< backends that only the compiling process had, where their kernels were timed
  bool raced = false;                               ///< false: the outcome of an earlier, equal race was in the cache
  std::string winner;                               ///< "searched", or the single backend whose plan won the race
  std::vector<PlanTiming> end_to_end;
  std::optional<double> noise;  ///< what an A/A pair of the same race differed by; nothing where it was too short to tell
  /// "Measured whole minus summed parts" of the plan that won: its median in the race less `estimated_us`.
  std::optional<double> additive_error_us;
  /// "Measured plan minus the best single-backend plan": the searched plan's paired time in the race over that of the fastest
  /// single-backend plan, less one. Above zero the search lost; nothing without a race between them.
  std::optional<double> apparent_loss;
  /// Partitions of the plan whose margin was not looked for, because the plan cannot be cut near by.
  size_t decisions_left_out = 0;
  double elapsed_seconds = 0;            ///< of the whole compile
  std::optional<double> budget_seconds;  ///< as given
  CandidateCounts candidates;
  std::vector<OperatorPlacement> operators;
  std::vector<std::pair<std::string, Shape>> inputs = {};  ///< the shapes that it is for; files of before have none
  std::vector<CompileReport> profiles = {};
};

/// "x=1x3x224x224 mask=1x224".
std::string ProfileName(const CompileReport& report);

/// What the plan is predicted to take as the prices say: what the prices of its partitions, conversions and transitions add up to.
double EstimateAtPrices(const CompileReport& report);
/// What likely no plan takes less than as the prices say. No speed of the machine lowers what is proved.
double LikelyBoundAtPrices(const CompileReport& report);

/// The report without what is true of one compile only (what was measured now, in which time): equal for equal programs.
CompileReport OfEveryCompile(CompileReport report);

enum class JsonLines { kOne, kMany };

/// For programs: `plan`, `end_to_end_ms`, `candidates` and the rest. Key order is fixed.
std::string ToJson(const CompileReport& report, JsonLines lines = JsonLines::kMany);
/// The inverse, from what a compiled file carries. Errors on JSON of another form.
Result<CompileReport> ReportFromJson(const std::string& text);

/// Plan and timings as a table for people.
std::string PlanTable(const CompileReport& report);

enum class ExplanationDetail { kPartitions, kOperators };
/// Each partition (or operator) by its ONNX nodes: who runs it, at what price, who came second, and what was refused.
std::string ExplanationText(const CompileReport& report, ExplanationDetail detail);

}  // namespace collage
