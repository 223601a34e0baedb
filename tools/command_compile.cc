#include <cstdio>
#include <memory>
#include <optional>

#include "collage/query/form_json.h"
#include "collage/query/rule_json.h"
#include "collage/search/searcher.h"
#include "collage/support/file.h"
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/interrupt.h"
#include "tools/output.h"
#include "tools/program.h"
#include "tools/supervision.h"
#include "tools/terminal_progress.h"

namespace collage::tools {
namespace {

struct Options {
  ProgramOptions program;
  std::string output;
  std::string json;
  std::string budget;
  std::string tune;
  bool exclusive = false;
  bool eager = false;
  bool cache_only = false;
  std::string single_backends;
  UserConstraints constraints;
  bool choose_devices = false;
  std::string search = CompileOptions::kUsualSearch;
  std::string partition_rules;
  std::string forms;
  std::optional<std::string> precision;
};

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

Status Compile(const Options& options) {
  CompileOptions compile = COLLAGE_TRY(ToCompileOptions(options.program));
  if (options.output.empty()) return Fail("--output is empty; expected the name of the compiled file");
  compile.output = options.output;
  if (!options.budget.empty()) {
    Result<double> seconds = ParseDuration(options.budget);
    if (!seconds) return Fail(seconds.error().At("--budget"));
    compile.budget_seconds = *seconds;
  }
  if (!options.tune.empty()) {
    Result<double> seconds = ParseDuration(options.tune);
    if (!seconds) return Fail(seconds.error().At("--tune"));
    compile.tuning_seconds = *seconds;
  }
  COLLAGE_TRY_STATUS(TakeStated("--partition-rules", options.partition_rules, StatedRulesFrom, compile.partition_rules));
  COLLAGE_TRY_STATUS(TakeStated("--forms", options.forms, StatedFormsFrom, compile.forms));
  if (options.precision) {
    Result<Precision> precision = Precision::Parse(*options.precision);
    if (!precision) return Fail("--precision " + precision.error().message);
    compile.precision = *precision;
  }
  if (const auto searcher = FindSearcher(options.search); !searcher) return Fail(searcher.error().At("--search"));
  compile.search = options.search;
  compile.eager = options.eager;
  compile.exclusive = options.exclusive;
  compile.cache_only = options.cache_only;
  compile.single_backends = options.single_backends;
  compile.constraints = options.constraints;
  compile.choose_devices = options.choose_devices;
  compile.activity = SupervisedActivity();
  if (compile.activity) compile.seconds_spent = compile.activity->SecondsSinceCreated();
  JsonOutput json = COLLAGE_TRY(JsonOutput::Create(options.json));
  TerminalProgress terminal(compile.budget_seconds, compile.seconds_spent);
  compile.progress = {[&](const ProgressEvent& event) { terminal.Show(event); }, &InterruptRequested()};
  const CompiledModel compiled = COLLAGE_TRY(CompileModel(options.program.file, compile));
  terminal.Clear();
  const CandidateCounts& counts = compiled.report.candidates;
  std::fprintf(json.Text(),
               "%scandidates: %zu found, %zu distinct, %zu of them measured; kernels: %zu measured now, %zu known, %zu rejected, "
               "%zu not needed (%zu of them by assumption)\n",
               PlanTable(compiled.report).c_str(), counts.found, counts.distinct, counts.measured, counts.variants.measured,
               counts.variants.cached, counts.rejected, counts.variants.unpriced, counts.variants.assumed);
  std::fprintf(json.Text(), "saved: %s\n", options.output.c_str());
  return json.Write(ToJson(compiled.report) + "\n");
}

}  // namespace

void AddCompileCommand(CLI::App& app, int& code) {
  CLI::App* command = app.add_subcommand("compile", "Place a model by measurement and save the program");
  auto options = std::make_shared<Options>();
  AddProgramOptions(*command, options->program);
  command->add_option("-o,--output", options->output, "The compiled file")->required();
  command->add_option("--json", options->json, "Write the report to this file (-: standard output)");
  command->add_option("--single-backends", options->single_backends,
                      "Also save the best plan of each single backend, as NAME.collage in this folder");
  CLI::Option* budget = command->add_option("--budget", options->budget,
                                            "Time for the whole compile, such as 90s or 10m; then the best plan of what was measured is "
                                            "taken. What is settled earlier ends earlier");
  budget->default_str("5m");
  CLI::Option* tune =
      command->add_option("--tune", options->tune,
                          "Time for tuning the schedules of generated kernels, such as 60s. What earlier compiles with the same "
                          "cache have tuned is used without it");
  command
      ->add_option(
          "--search", options->search,
          "How the plan is searched among what is priced: sweep and exact find the cheapest; op-level is the paper's dynamic program, "
          "evolutionary its two stages, the second one timing whole plans; greedy takes the largest candidates in the order of the "
          "targets. The last three price everything")
      ->capture_default_str();
  command->add_option(
      "--precision", options->precision,
      "Permit kernels to compute with fewer bits where that is faster: bf16, all numbers as bfloat16; int8-weights, constant weights of "
      "products as integers of 8 bits with a scale for each channel. With =TOLERANCE behind it the whole program may differ from the "
      "float32 reference by that share of an output's largest value (default 0.031 and 0.063)");
  command->add_option("--partition-rules", options->partition_rules,
                      "JSON file with a rule tree for each name that -partition_rule=NAME of a --target may have (docs/query.md)");
  command->add_option("--forms", options->forms,
                      "JSON file with rules of your own for other ways to compute parts of a model; each is compared with what it stands "
                      "for, and taken where it is faster (docs/query.md)");
  command->add_flag("--eager", options->eager,
                    "Measure every candidate. By default those are left out that hardly can be part of the cheapest plan, by what kernels "
                    "like them have taken");
  command->add_flag("--exclusive", options->exclusive,
                    "Raise the priority of this whole terminal session while measuring, where the system permits that. By default that of "
                    "the compile's own processes only");
  command
      ->add_flag("--cache-only", options->cache_only,
                 "Measure nothing: all prices and the race come from the cache, and what is not there is an error that names it")
      ->excludes(budget)
      ->excludes(tune);
  command->add_option(
      "--pin", options->constraints.pin,
      "NODE=BACKEND or NODE=DEVICE: run this node of the model there; NODE as collage explain lists it, or an operator, nn.conv2d, for all "
      "its calls; DEVICE as collage backends lists it, opencl:0 (repeat)");
  command->add_flag("--choose-devices", options->choose_devices,
                    "Choose the device of everything that no pin fixes; without --target, among all that collage backends lists");
  command->add_option("--forbid", options->constraints.forbid,
                      "BACKEND[:NODE]: run nothing there, or nothing that holds this node or operator; forms[:NODE or rule] in place of "
                      "a backend: keep the form that the model has (repeat)");
  command->callback([options, &code] {
    if (const std::optional<int> done = RunSupervised(CacheOf(options->program))) {
      code = *done;
      return;
    }
    const Status status = Compile(*options);
    code = status ? kDone : ReportError(status.error());
  });
}

}  // namespace collage::tools
