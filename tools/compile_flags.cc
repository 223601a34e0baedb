#include "tools/compile_flags.h"

#include "collage/query/form_json.h"
#include "collage/query/rule_json.h"
#include "collage/search/searcher.h"
#include "collage/support/file.h"
#include "tools/inputs.h"

namespace collage::tools {
namespace {

template <class Stated>
Result<Stated> ReadStated(const std::string& file, Result<Stated> (*read)(const JsonReader&)) {
  const std::string text = COLLAGE_TRY(ReadFile(file));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Fail(file + ": is no JSON");
  return read(JsonReader(json, file));
}

/// What an option's file states, where the option is given.
template <class Stated>
Status TakeStated(const char* option, const std::string& file, Result<Stated> (*read)(const JsonReader&), Stated& stated) {
  if (file.empty()) return {};
  Result<Stated> found = ReadStated(file, read);
  if (!found) return Fail(found.error().At(option));
  stated = std::move(*found);
  return {};
}

Status TakeSeconds(const char* option, const std::string& text, double& seconds) {
  if (text.empty()) return {};
  const Result<double> parsed = ParseDuration(text);
  if (!parsed) return Fail(parsed.error().At(option));
  seconds = *parsed;
  return {};
}

}  // namespace

void AddCompileFlags(CLI::App& command, CompileFlags& flags) {
  CLI::Option* budget = command.add_option("--budget", flags.budget,
                                           "Time for the whole compile, such as 90s or 10m; then the best plan of what was measured is "
                                           "taken. What is settled earlier ends earlier");
  budget->default_str("5m");
  CLI::Option* tune =
      command.add_option("--tune", flags.tune,
                         "Time for tuning the schedules of generated kernels, such as 60s. What earlier compiles with the same "
                         "cache have tuned is used without it");
  command
      .add_option(
          "--search", flags.search,
          "How the plan is searched among what is priced: sweep and exact find the cheapest; op-level is the paper's dynamic program, "
          "evolutionary its two stages, the second one timing whole plans; greedy takes the largest candidates in the order of the "
          "targets. The last three price everything")
      ->capture_default_str();
  command.add_option(
      "--precision", flags.precision,
      "Permit kernels to compute with fewer bits where that is faster: bf16, all numbers as bfloat16; int8-weights, constant weights of "
      "products as integers of 8 bits with a scale for each channel. With =TOLERANCE behind it the whole program may differ from the "
      "float32 reference by that share of an output's largest value (default 0.031 and 0.063)");
  command.add_option("--partition-rules", flags.partition_rules,
                     "JSON file with a rule tree for each name that -partition_rule=NAME of a --target may have (docs/query.md)");
  command.add_option("--forms", flags.forms,
                     "JSON file with rules of your own for other ways to compute parts of a model; each is compared with what it stands "
                     "for, and taken where it is faster (docs/query.md)");
  command.add_flag("--eager", flags.eager,
                   "Measure every candidate. By default those are left out that hardly can be part of the cheapest plan, by what kernels "
                   "like them have taken");
  command.add_flag("--exclusive", flags.exclusive,
                   "Raise the priority of this whole terminal session while measuring, where the system permits that. By default that of "
                   "the compile's own processes only");
  command
      .add_flag("--cache-only", flags.cache_only,
                "Measure nothing: all prices and the race come from the cache, and what is not there is an error that names it")
      ->excludes(budget)
      ->excludes(tune);
  command.add_option(
      "--pin", flags.constraints.pin,
      "NODE=BACKEND or NODE=DEVICE: run this node of the model there; NODE as collage explain lists it, or an operator, nn.conv2d, for all "
      "its calls; DEVICE as collage backends lists it, opencl:0 (repeat)");
  command.add_flag("--choose-devices", flags.choose_devices,
                   "Choose the device of everything that no pin fixes; without --target, among all that collage backends lists");
  command.add_option("--forbid", flags.constraints.forbid,
                     "BACKEND[:NODE]: run nothing there, or nothing that holds this node or operator; forms[:NODE or rule] in place of "
                     "a backend: keep the form that the model has (repeat)");
}

Status TakeCompileFlags(const CompileFlags& flags, CompileOptions& options) {
  COLLAGE_TRY_STATUS(TakeSeconds("--budget", flags.budget, options.budget_seconds));
  COLLAGE_TRY_STATUS(TakeSeconds("--tune", flags.tune, options.tuning_seconds));
  COLLAGE_TRY_STATUS(TakeStated("--partition-rules", flags.partition_rules, StatedRulesFrom, options.partition_rules));
  COLLAGE_TRY_STATUS(TakeStated("--forms", flags.forms, StatedFormsFrom, options.forms));
  if (flags.precision) {
    const Result<Precision> precision = Precision::Parse(*flags.precision);
    if (!precision) return Fail("--precision " + precision.error().message);
    options.precision = *precision;
  }
  if (const auto searcher = FindSearcher(flags.search); !searcher) return Fail(searcher.error().At("--search"));
  options.search = flags.search;
  options.constraints = flags.constraints;
  options.choose_devices = flags.choose_devices;
  options.eager = flags.eager;
  options.exclusive = flags.exclusive;
  options.cache_only = flags.cache_only;
  return {};
}

}  // namespace collage::tools
