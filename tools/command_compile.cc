#include <cstdio>
#include <memory>
#include <optional>

#include "tools/command.h"
#include "tools/output.h"
#include "tools/program.h"
#include "tools/supervision.h"

namespace collage::tools {
namespace {

struct Options {
  ProgramOptions program;
  std::string output;
  std::string json;
  std::string single_backends;
};

std::string LeftOut(const CandidateCounts& counts) {
  return counts.variants.too_long == 0 ? ""
                                       : ", " + std::to_string(counts.variants.too_long) + " left out: too long to compile in the budget";
}

Status Compile(const Options& options) {
  CompileOptions compile = COLLAGE_TRY(ToCompileOptions(options.program));
  if (options.output.empty()) return Fail("--output is empty; expected the name of the compiled file");
  compile.output = options.output;
  compile.single_backends = options.single_backends;
  JsonOutput json = COLLAGE_TRY(JsonOutput::Create(options.json));
  // Never destroyed, since this process ends here: of 10 000 operators that took 4 s behind the last line.
  const CompiledModel& compiled = *new CompiledModel(COLLAGE_TRY(CompileShown(options.program.file, compile)));
  const CandidateCounts& counts = compiled.report.candidates;
  std::fprintf(json.Text(),
               "%scandidates: %zu found, %zu distinct, %zu of them measured; kernels: %zu measured now, %zu known, %zu rejected, "
               "%zu not needed (%zu of them by assumption)%s\n",
               PlanTable(compiled.report).c_str(), counts.found, counts.distinct, counts.measured, counts.variants.measured,
               counts.variants.cached, counts.rejected, counts.variants.unpriced, counts.variants.assumed, LeftOut(counts).c_str());
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
