#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "collage/backend/registry.h"
#include "collage/cost/comparison.h"
#include "collage/lower/save.h"
#include "collage/measure/race.h"
#include "collage/runtime/device.h"
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/interrupt.h"
#include "tools/output.h"
#include "tools/program.h"
#include "tools/terminal_progress.h"

namespace collage::tools {
namespace {

struct Options {
  std::string files[2];
  InputOptions inputs;
  std::vector<std::string> shapes;
  std::vector<std::string> processors;
  int threads = AvailableThreads();
  double duration = 10;
  std::string json;
};

/// A program loaded, with inputs and outputs of its own.
struct Loaded {
  Executable executable;
  std::shared_ptr<const Remainder> remainder;  // behind the profile of the inputs; null where nothing is
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;

  Status Run() {
    COLLAGE_TRY_STATUS(executable.Run(inputs, outputs));
    if (remainder) COLLAGE_TRY(RunRemainder(executable, *remainder, outputs));
    return {};
  }
};

/// What is stated for CPUs that a file has kernels on, one of the two: the other may be what cpu:1 is compared with.
Result<std::array<std::vector<CpuStatement>, 2>> CpusOfFiles(const Options& options) {
  std::array<std::vector<CpuStatement>, 2> of_files;
  const std::vector<CpuStatement> stated = COLLAGE_TRY(StatedCpus(options.processors));
  if (stated.empty()) return of_files;
  std::array<std::vector<KernelRecord>, 2> plans;
  for (size_t file = 0; file < 2; ++file) plans[file] = COLLAGE_TRY(ReadProgramInfo(options.files[file])).plan;
  for (const CpuStatement& cpu : stated) {
    const auto is_there = [&](const KernelRecord& kernel) {
      if (!CpuStatement::IsOne(kernel.device)) return false;
      const Result<CpuStatement> own = CpuStatement::Parse(kernel.device);
      return own && own->id == cpu.id;
    };
    bool is_used = false;
    for (size_t file = 0; file < 2; ++file) {
      if (std::none_of(plans[file].begin(), plans[file].end(), is_there)) continue;
      of_files[file].push_back(cpu);
      is_used = true;
    }
    if (!is_used)
      return Fail("--processors: neither " + options.files[0] + " nor " + options.files[1] +
                  " has kernels on cpu:" + std::to_string(cpu.id));
  }
  return of_files;
}

Result<Loaded> Load(const std::string& file, const Options& options, const std::vector<CpuStatement>& cpus) {
  BuildOptions build;
  build.device.threads = options.threads;
  build.find_backend = FindBackend;
  build.cpus = cpus;
  LoweredModel model = COLLAGE_TRY(LoadProgram(file, build));
  Executable& executable = model.executable;
  const std::vector<InputShapes> asked = COLLAGE_TRY(ParseProfiles(options.shapes));
  GatheredInputs inputs =
      COLLAGE_TRY(GatherInputs(options.inputs, executable.shape_profiles(), asked.size() == 1 ? asked[0] : InputShapes()));
  std::shared_ptr<const Remainder> remainder = model.remainders.empty() ? nullptr : model.remainders[inputs.profile];
  Loaded loaded{std::move(executable), std::move(remainder), std::move(inputs.tensors), {}};
  for (const NamedType& output : loaded.executable.shape_profiles()[inputs.profile].outputs) loaded.outputs.emplace_back(output.type);
  return loaded;
}

/// Two programs that take other inputs do other things, so that no time of theirs compares.
Status CheckComparable(const Options& options, const std::vector<Loaded>& loaded) {
  const auto describe = [](const std::vector<Tensor>& tensors) {
    std::string text;
    for (const Tensor& tensor : tensors) text += (text.empty() ? "" : ", ") + ToString(tensor.type());
    return text.empty() ? std::string("nothing") : text;
  };
  for (const auto member : {&Loaded::inputs, &Loaded::outputs}) {
    const std::string a = describe(loaded[0].*member);
    const std::string b = describe(loaded[1].*member);
    if (a == b) continue;
    const char* what = member == &Loaded::inputs ? " takes " : " gives ";
    return Fail(options.files[0] + what + a + ", and " + options.files[1] + what + b + ": they are not two programs of one model");
  }
  return {};
}

/// a[i] / b[i] of every round in which both ran: who has lost leaves the race early.
std::vector<double> Ratios(const RaceResult& a, const RaceResult& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.rounds.size(), b.rounds.size()); ++i) ratios.push_back(a.rounds[i] / b.rounds[i]);
  return ratios;
}

// Where a program's memory lies makes it a few percent faster or slower, so each is loaded twice: what two copies of one program differ by
// is the noise of this comparison.
constexpr size_t kCopies = 2;

struct Answer {
  std::vector<double> ratios;  ///< of the first program to the second, of all rounds and copies
  double ratio;
  std::optional<Interval> interval;
  double noise;
  bool is_real;   ///< the difference
  bool is_known;  ///< it is real, or too small to matter
};

/// Of the copies in turn: results[0] and results[2] are the first program's.
Answer AnswerOf(const std::vector<RaceResult>& results, const Declared& declared) {
  Answer answer{Ratios(results[0], results[1]), 1, {}, 0, false, false};
  const std::vector<double> of_copies = Ratios(results[2], results[3]);
  answer.ratios.insert(answer.ratios.end(), of_copies.begin(), of_copies.end());
  for (size_t i = 0; i < kCopies; ++i)
    answer.noise = std::max(answer.noise, std::abs(PairedRatio(results[i].rounds, results[i + kCopies].rounds) - 1));
  answer.ratio = Median(answer.ratios);
  answer.interval = MedianInterval(answer.ratios, declared.confidence);
  const Comparison verdict = Compare(answer.ratios, std::vector<double>(answer.ratios.size(), 1.0), declared);
  answer.is_real = (verdict == Comparison::kBetter || verdict == Comparison::kWorse) && std::abs(answer.ratio - 1) > answer.noise;
  answer.is_known = answer.is_real || verdict == Comparison::kTie;
  return answer;
}

Status RunCompare(const Options& options) {
  JsonOutput json = COLLAGE_TRY(JsonOutput::Create(options.json));
  const std::array<std::vector<CpuStatement>, 2> cpus = COLLAGE_TRY(CpusOfFiles(options));
  std::vector<Loaded> loaded;
  for (size_t copy = 0; copy < 2 * kCopies; ++copy) loaded.push_back(COLLAGE_TRY(Load(options.files[copy % 2], options, cpus[copy % 2])));
  COLLAGE_TRY_STATUS(CheckComparable(options, loaded));
  std::vector<Contestant> contestants;
  for (size_t i = 0; i < loaded.size(); ++i) contestants.push_back({options.files[i % 2], [&one = loaded[i]] { return one.Run(); }});
  RaceOptions race;
  race.threads = options.threads;
  race.budget_seconds = options.duration;
  race.is_answered = [&race](const std::vector<RaceResult>& results) {
    const bool has_failed = std::ranges::any_of(results, [](const RaceResult& result) { return result.rounds.empty(); });
    return has_failed || AnswerOf(results, race.declared).is_known;
  };
  TerminalProgress terminal(options.duration);
  const std::vector<RaceResult> results =
      Race(contestants, race, {[&](const ProgressEvent& event) { terminal.Show(event); }, &InterruptRequested()});
  for (const RaceResult& result : results) {
    if (!result.failure.empty()) return Fail(result.name + ": " + result.failure);
  }
  terminal.Clear();
  const Answer answer = AnswerOf(results, race.declared);

  nlohmann::ordered_json report = {{"programs", nlohmann::ordered_json::array()}};
  for (size_t i = 0; i < 2; ++i) {
    const double median_ms = Median(results[i].rounds) * 1e3;
    report["programs"].push_back({{"file", options.files[i]}, {"median_ms", median_ms}});
    std::fprintf(json.Text(), "%10.4f ms  %s\n", median_ms, options.files[i].c_str());
  }
  report["ratio"] = answer.ratio;
  if (answer.interval) report["interval"] = {answer.interval->low, answer.interval->high};
  report["confidence"] = race.declared.confidence;
  report["noise"] = answer.noise;
  report["rounds"] = answer.ratios.size();
  report["is_real"] = answer.is_real;
  const std::string between = answer.interval ? fmt::format(" ({:.0f}% confidence: {:.3f} to {:.3f})", 100 * race.declared.confidence,
                                                            answer.interval->low, answer.interval->high)
                                              : std::string(" (too few rounds for an interval)");
  std::fprintf(json.Text(), "the first takes %.3f times as long as the second%s; two copies of one program differ by %.1f%%\n",
               answer.ratio, between.c_str(), 100 * answer.noise);
  std::fprintf(json.Text(), "%s\n",
               !answer.is_real    ? "no difference between them is shown"
               : answer.ratio < 1 ? "the first is faster"
                                  : "the second is faster");
  return json.WriteValue(report);
}

}  // namespace

void AddCompareCommand(CLI::App& app, int& code) {
  CLI::App* command = app.add_subcommand("compare", "Say which of two compiled files of one model is faster, and whether that is noise");
  auto options = std::make_shared<Options>();
  command->add_option("first", options->files[0], "A compiled file")->required();
  command->add_option("second", options->files[1], "Another one")->required();
  command->add_option("--shape", options->shapes, "The profile to take: name=1x3x224x224 (repeat)");
  command->add_option("--threads", options->threads, "Threads of each")->check(ThreadCount())->capture_default_str();
  command->add_option(
      "--processors", options->processors,
      "For a CPU beside the host, such as cpu:1=2-3 (repeat): in place of the processors that a file keeps for it. It is for "
      "the files that have kernels there, one at least");
  AddInputOptions(*command, options->inputs);
  command->add_option("--duration", options->duration, "Seconds at most; it ends as soon as the answer is known")
      ->check(NumberBetween(1e-9, 1e9))
      ->capture_default_str();
  command->add_option("--json", options->json, "Write the figures to this file (-: standard output)");
  command->callback([options, &code] {
    if (options->inputs.files.empty() && options->inputs.archive.empty() && !options->inputs.random_seed) options->inputs.random_seed = 1;
    const Status status = RunCompare(*options);
    code = status ? kDone : ReportError(status.error());
  });
}

}  // namespace collage::tools
