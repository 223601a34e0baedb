#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <numeric>
#include <sstream>

#include "collage/cost/statistics.h"
#include "collage/measure/measure_kernel.h"
#include "collage/support/clock.h"
#include "collage/support/short_list.h"
#include "tools/command.h"
#include "tools/csv.h"
#include "tools/inputs.h"
#include "tools/interrupt.h"
#include "tools/on_demand.h"
#include "tools/output.h"
#include "tools/program.h"
#include "tools/ran_steps.h"

namespace collage::tools {
namespace {

struct Options {
  ProgramOptions program;
  InputOptions inputs;
  int iterations = 0;
  int warm_up = 10;
  double duration = 5;
  bool profile = false;
  bool rounds_from_standard_input = false;
  std::string json;
  std::string csv;
  std::string trace;
};

/// A program with its inputs and outputs bound; what a remainder gives is made anew in each run.
class Bench {
 public:
  Bench(Executable executable, std::shared_ptr<const Remainder> remainder, GatheredInputs inputs)
      : executable_(std::move(executable)),
        remainder_(std::move(remainder)),
        shapes_(executable_.shape_profiles()[inputs.profile]),
        inputs_(std::move(inputs.tensors)) {
    for (const NamedType& output : shapes_.outputs) outputs_.emplace_back(output.type);
  }

  Result<double> RunOnceMilliseconds() {
    const Clock::time_point start = Clock::now();
    COLLAGE_TRY_STATUS(executable_.Run(inputs_, outputs_));
    if (remainder_) COLLAGE_TRY(RunRemainder(executable_, *remainder_, outputs_));
    return Clock::SecondsSince(start) * 1e3;
  }

  Executable& executable() { return executable_; }
  [[nodiscard]] const ShapeProfile& shapes() const { return shapes_; }

 private:
  Executable executable_;
  std::shared_ptr<const Remainder> remainder_;
  ShapeProfile shapes_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
};

Result<std::vector<double>> Sample(Bench& bench, const Options& options) {
  for (int i = 0; i < options.warm_up; ++i) COLLAGE_TRY(bench.RunOnceMilliseconds());
  std::vector<double> samples;
  const Clock::time_point start = Clock::now();
  while (!InterruptRequested()) {
    const bool enough =
        options.iterations > 0 ? static_cast<int>(samples.size()) >= options.iterations : Clock::SecondsSince(start) >= options.duration;
    if (enough && !samples.empty()) break;
    samples.push_back(COLLAGE_TRY(bench.RunOnceMilliseconds()));
  }
  return samples;
}

nlohmann::ordered_json Latency(const std::vector<double>& samples) {
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
  return {{"min", Percentile(samples, 0)},
          {"p10", Percentile(samples, 0.1)},
          {"median", Percentile(samples, 0.5)},
          {"mean", mean},
          {"p90", Percentile(samples, 0.9)}};
}

/// Of the steps that ran: not those of other shapes, nor of branches that were not taken.
nlohmann::ordered_json Profile(const Executable& executable) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const StepProfile& step : executable.profile()) {
    if (step.calls == 0) continue;
    steps.push_back({{"kind", step.kind},
                     {"name", step.record.name},
                     {"backend", step.record.backend},
                     {"variant", step.record.variant},
                     {"operators", step.record.operators},
                     {"nodes", step.record.nodes},
                     {"calls", step.calls},
                     {"mean_us", step.microseconds / static_cast<double>(step.calls)}});
  }
  return steps;
}

/// The last call of each step as complete events of the Trace Event Format, which Perfetto and chrome://tracing read: a row for each
/// device.
nlohmann::ordered_json Trace(const Executable& executable) {
  const std::vector<const StepProfile*> ran = RanSteps(executable);
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  std::vector<Device> rows;
  for (const StepProfile* step : ran) {
    const auto found = std::find(rows.begin(), rows.end(), step->device);
    const auto row = static_cast<size_t>(found - rows.begin());
    if (found == rows.end()) {
      rows.push_back(step->device);
      events.push_back({{"name", "thread_name"}, {"ph", "M"}, {"pid", 0}, {"tid", row}, {"args", {{"name", ToString(step->device)}}}});
    }
    const std::string& backend = step->record.backend;
    events.push_back({{"name", step->record.nodes.empty() ? step->record.name : CountedList(step->record.nodes, "nodes")},
                      {"cat", backend.empty() ? step->kind : backend},
                      {"ph", "X"},
                      {"pid", 0},
                      {"tid", row},
                      {"ts", BeganAfterMicroseconds(*ran.front(), *step)},
                      {"dur", step->last_microseconds},
                      {"args",
                       {{"kind", step->kind},
                        {"backend", backend},
                        {"variant", step->record.variant},
                        {"operators", step->record.operators},
                        {"calls", step->calls},
                        {"mean_us", step->microseconds / static_cast<double>(step->calls)}}}});
  }
  return {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
}

/// Answers each line "run N" with {"samples_ms": [...]} and "load" with {"load_ms": ...}, until the input ends: so a driver can interleave
/// several processes.
Status ServeRounds(Bench& bench, double load_seconds) {
  for (std::string line; std::getline(std::cin, line) && !InterruptRequested();) {
    if (line == "load") {
      std::cout << nlohmann::ordered_json{{"load_ms", load_seconds * 1e3}}.dump() << std::endl;
      continue;
    }
    std::istringstream words(line);
    std::string verb;
    int count = 0;
    if (!(words >> verb >> count) || verb != "run" || count < 1)
      return Fail("standard input: found '" + line + "', expected: run N, or load");
    std::vector<double> samples;
    for (int i = 0; i < count; ++i) samples.push_back(COLLAGE_TRY(bench.RunOnceMilliseconds()));
    std::cout << nlohmann::ordered_json{{"samples_ms", samples}}.dump() << std::endl;
  }
  return {};
}

void PrintProfile(std::FILE* text, const nlohmann::ordered_json& steps) {
  std::fprintf(text, "%10s  %-10s  %-10s  %-18s  %s\n", "mean us", "kind", "backend", "variant", "nodes of the model, or what it is");
  for (const auto& step : steps) {
    const auto nodes = step["nodes"].get<std::vector<std::string>>();
    const std::string what = nodes.empty() ? step["name"].get<std::string>() : CountedList(nodes, "nodes");
    std::fprintf(text, "%10.1f  %-10s  %-10s  %-18s  %s\n", step["mean_us"].get<double>(), step["kind"].get<std::string>().c_str(),
                 step["backend"].get<std::string>().c_str(), step["variant"].get<std::string>().c_str(), what.c_str());
  }
}

std::string Joined(const nlohmann::ordered_json& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : " ") + name.get<std::string>();
  return text;
}

/// The profile, a row for each step; without one the latency, in one row.
std::string Csv(const nlohmann::ordered_json& report, const Options& options, const ShapeProfile& shapes) {
  if (!report.contains("profile")) {
    std::vector<std::string> names = {"file", "inputs", "threads", "iterations"};
    std::vector<std::string> cells = {options.program.file, ToString(shapes), report["threads"].dump(), report["iterations"].dump()};
    for (const auto& [name, value] : report["latency_ms"].items()) {
      names.push_back(name + "_ms");
      cells.push_back(value.dump());
    }
    return CsvRow(names) + CsvRow(cells);
  }
  std::string text = CsvRow({"kind", "name", "backend", "variant", "operators", "nodes", "calls", "mean_us"});
  for (const auto& step : report["profile"]) {
    text += CsvRow({step["kind"], step["name"], step["backend"], step["variant"], Joined(step["operators"]), Joined(step["nodes"]),
                    step["calls"].dump(), step["mean_us"].dump()});
  }
  return text;
}

Status RunBench(const Options& options) {
  if (options.json == "-" && options.csv == "-") return Fail("--json and --csv: only one of them can be standard output");
  JsonOutput json = COLLAGE_TRY(JsonOutput::Create(options.json));
  JsonOutput csv = COLLAGE_TRY(JsonOutput::Create(options.csv));
  std::FILE* const text = options.csv == "-" ? csv.Text() : json.Text();
  JsonOutput trace = COLLAGE_TRY(JsonOutput::Create(options.trace));
  const Clock::time_point start = Clock::now();
  auto [executable, remainder, inputs] = COLLAGE_TRY(PrepareRun(options.program, options.inputs));
  const double load_seconds = Clock::SecondsSince(start);
  const bool has_choice = executable.shape_profiles().size() > 1;
  Bench bench(std::move(executable), std::move(remainder), std::move(inputs));
  if (options.rounds_from_standard_input) return ServeRounds(bench, load_seconds);
  if (options.profile || !options.trace.empty()) bench.executable().SetProfiling(true);
  const std::vector<double> samples = COLLAGE_TRY(Sample(bench, options));
  if (samples.empty()) return Fail("interrupted before the first sample");
  nlohmann::ordered_json report = {{"latency_ms", Latency(samples)}, {"iterations", samples.size()}, {"threads", options.program.threads}};
  report["inputs"] = nlohmann::ordered_json::object();
  for (const auto& [name, type] : bench.shapes().inputs) report["inputs"][name] = type.shape;
  if (options.profile) report["profile"] = Profile(bench.executable());
  if (options.profile) PrintProfile(text, report["profile"]);
  if (has_choice) std::fprintf(text, "profile %s\n", ToString(bench.shapes()).c_str());
  if (!options.trace.empty()) COLLAGE_TRY_STATUS(trace.WriteValue(Trace(bench.executable())));
  const auto& latency = report["latency_ms"];
  std::fprintf(text, "latency ms: min %.4f  p10 %.4f  median %.4f  mean %.4f  p90 %.4f  (%zu iterations, %d threads)\n",
               latency["min"].get<double>(), latency["p10"].get<double>(), latency["median"].get<double>(), latency["mean"].get<double>(),
               latency["p90"].get<double>(), samples.size(), options.program.threads);
  COLLAGE_TRY_STATUS(csv.Write(Csv(report, options, bench.shapes())));
  return json.WriteValue(report);
}

}  // namespace

void AddBenchCommand(CLI::App& app, int& code) {
  CLI::App* command = app.add_subcommand("bench", "Time a compiled file (or a model, which is compiled first)");
  auto options = std::make_shared<Options>();
  AddProgramOptions(*command, options->program);
  AddLoadOptions(*command, options->program);
  AddInputOptions(*command, options->inputs);
  command->add_option("--iterations", options->iterations, "Timed runs; 0: as many as fit into --duration")->check(NumberBetween(0, 1e9));
  command->add_option("--warmup", options->warm_up, "Runs before the timed ones")->check(NumberBetween(0, 1e9))->capture_default_str();
  command->add_option("--duration", options->duration, "Seconds of timed runs")->check(NumberBetween(1e-9, 1e9))->capture_default_str();
  command->add_flag("--profile", options->profile, "Time each step as well");
  command->add_option("--trace", options->trace,
                      "Write the last run, step by step, to this file for Perfetto or chrome://tracing (with it every step is timed)");
  command->add_flag("--stdin-rounds", options->rounds_from_standard_input,
                    "Answer lines 'run N' and 'load' from standard input with times as JSON");
  command->add_option("--json", options->json, "Write the figures to this file (-: standard output)");
  command->add_option("--csv", options->csv,
                      "Write the figures as a table to this file (-: standard output): one row, or with --profile a row for each step");
  command->callback([options, &code] {
    if (const std::optional<int> done = SuperviseCompiling(options->program)) {
      code = *done;
      return;
    }
    // Where no input is given, any will do for timing.
    if (options->inputs.files.empty() && options->inputs.archive.empty() && !options->inputs.random_seed) options->inputs.random_seed = 1;
    const Status status = RunBench(*options);
    code = status ? kDone : ReportError(status.error());
  });
}

}  // namespace collage::tools
