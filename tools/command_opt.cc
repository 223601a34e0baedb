#include <algorithm>
#include <cstdio>
#include <memory>
#include <sstream>

#include "collage/ir/verify.h"
#include "collage/runtime/device.h"
#include "collage/support/file.h"
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/interrupt.h"
#include "tools/opt_constants.h"
#include "tools/opt_passes.h"
#include "tools/output.h"
#include "tools/program.h"
#include "tools/terminal_progress.h"

namespace collage::tools {
namespace {

struct Options {
  std::string file;
  std::vector<std::string> passes;
  std::vector<std::string> targets;
  std::vector<std::string> devices;
  std::string host;
  std::string default_device;
  std::string constants;
  std::string output;
  std::string output_constants;
  std::string cache;
  std::string plan;
  std::string save_plan;
  int threads = AvailableThreads();
};

Result<std::vector<std::string>> SelectPasses(const std::vector<std::string>& lists, const std::vector<std::string>& known) {
  std::vector<std::string> selected;
  for (const std::string& list : lists) {
    std::istringstream words(list);
    for (std::string name; std::getline(words, name, ',');) {
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        std::string all;
        for (const std::string& pass : known) all += (all.empty() ? "" : ", ") + pass;
        return Fail("--pass " + name + ": unknown; there are " + all);
      }
      selected.push_back(name);
    }
  }
  return selected;
}

Status Write(const std::string& text, const std::string& path) {
  if (!path.empty()) return WriteFileAtomically(path, text);
  std::fputs(text.c_str(), stdout);
  return {};
}

Result<std::optional<VirtualDevice>> OptionalDevice(const std::string& text) {
  if (text.empty()) return std::optional<VirtualDevice>();
  return std::optional<VirtualDevice>(COLLAGE_TRY(VirtualDevice::Parse(text)));
}

Result<DeviceConfiguration> DevicesOf(const Options& options) {
  std::vector<ListedDevice> devices;
  for (const std::string& device : options.devices) devices.push_back(COLLAGE_TRY(ParseListedDevice(device)));
  return DeviceConfiguration::Create(std::move(devices), COLLAGE_TRY(OptionalDevice(options.host)),
                                     COLLAGE_TRY(OptionalDevice(options.default_device)));
}

Status Optimize(const Options& options) {
  TravellingConstants constants = COLLAGE_TRY(TravellingConstants::Read(options.constants));
  const std::string text = COLLAGE_TRY(ReadFile(options.file));
  Result<IRModule> module = constants.Parse(text);
  if (!module) return Fail(module.error().At(options.file));
  if (Status verified = Verify(*module); !verified) return Fail(verified.error().At(options.file));

  CompileOptions compile;
  compile.threads = options.threads;
  compile.cache = options.cache.empty() ? DefaultCache() : options.cache;
  TerminalProgress terminal(compile.budget_seconds);
  compile.progress = {[&](const ProgressEvent& event) { terminal.Show(event); }, &InterruptRequested()};
  OptRun run = COLLAGE_TRY(OptRun::Create(*std::move(module), options.targets, std::move(compile)));
  if (!options.devices.empty()) run.SetDevices(COLLAGE_TRY(DevicesOf(options)));
  run.SetPlanFiles(options.save_plan, options.plan);
  for (const std::string& pass : COLLAGE_TRY(SelectPasses(options.passes, run.PassNames()))) COLLAGE_TRY_STATUS(run.Run(pass));
  terminal.Clear();

  const std::string printed = constants.Print(run.module());
  if (!options.output_constants.empty()) {
    if (constants.MadeUpCount() > 0) {
      std::fprintf(stderr, "collage: %zu constants had no value and were made up at random\n", constants.MadeUpCount());
    }
    COLLAGE_TRY_STATUS(constants.Write(options.output_constants));
  }
  return Write(run.GivesData() ? run.Data(printed).dump(2) + "\n" : printed, options.output);
}

}  // namespace

void AddOptCommand(CLI::App& app, int& code) {
  CLI::App* command = app.add_subcommand("opt", "Run single passes over a program in text form and print the result");
  auto options = std::make_shared<Options>();
  command->add_option("file", options->file, "A program in Relay's text form")->required();
  command
      ->add_option("--pass", options->passes,
                   "Passes in order, by name (repeat, or separate by commas). The stages annotate, deconflict and merge give data beside "
                   "the program: after one of them the output is JSON, {\"program\", \"functions\"}")
      ->required();
  command->add_option("--target", options->targets,
                      "A target such as \"cpu -compiler=dnnl\"; several in order of priority (repeat; default: all that is present)");
  command->add_option("--device", options->devices,
                      "A device that plan-devices and hoist-devices may use, with its targets: \"cuda:0; cuda; cuda -compiler=cudnn\" "
                      "(repeat; default: cpu:0)");
  command->add_option("--host", options->host, "Which of them the host is (default: a target's -host=, else the lowest CPU)");
  command->add_option("--default-device", options->default_device,
                      "Where what nothing is said of lies, \"cuda:0@global\" (default: the only device, else the lowest CPU)");
  command->add_option("--constants", options->constants,
                      "An .npz archive with the values of meta[relay.Constant][i] under the names i; others are made up at random");
  command->add_option("-o,--output", options->output, "Write to this file instead of standard output");
  command->add_option("--output-constants", options->output_constants, "Write the constants of the result to this .npz archive");
  command->add_option("--cache", options->cache, "What keeps prices (pass collage): a SQLite file, or the URL of a PostgreSQL database")
      ->default_str(DefaultCache());
  command->add_option("--save-plan", options->save_plan, "Write the plan to this file (pass collage)");
  command->add_option("--plan", options->plan, "A plan that was saved, of this program (pass apply-plan)");
  command->add_option("--threads", options->threads, "Threads (pass collage)")->check(ThreadCount())->capture_default_str();
  command->callback([options, &code] {
    const Status status = Optimize(*options);
    code = status ? kDone : ReportError(status.error());
  });
}

}  // namespace collage::tools
