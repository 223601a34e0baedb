#include <cstdio>
#include <filesystem>
#include <memory>

#include "collage/tensor/npy.h"
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/output.h"
#include "tools/program.h"

namespace collage::tools {
namespace {

struct Options {
  ProgramOptions program;
  InputOptions inputs;
  std::string output;
};

/// Output names may hold any characters; in a file name a slash would be a folder.
std::string FileName(std::string name) {
  for (char& c : name) {
    if (c == '/' || c == '\0') c = '_';
  }
  return name + ".npy";
}

Status WriteOutputs(const std::filesystem::path& folder, const std::vector<NamedType>& types, const std::vector<Tensor>& outputs) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Fail(folder.string() + ": cannot be made: " + error.message());
  for (size_t i = 0; i < outputs.size(); ++i) COLLAGE_TRY_STATUS(WriteNpy(folder / FileName(types[i].name), outputs[i]));
  return {};
}

void PrintSummary(const std::vector<NamedType>& types, const std::vector<Tensor>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    double low = 0;
    double high = 0;
    double sum = 0;
    const std::vector<double> values = outputs[i].ToDouble();
    for (size_t j = 0; j < values.size(); ++j) {
      low = j == 0 ? values[j] : std::min(low, values[j]);
      high = j == 0 ? values[j] : std::max(high, values[j]);
      sum += values[j];
    }
    std::printf("%s: %s  min %g  mean %g  max %g\n", types[i].name.c_str(), ToString(types[i].type).c_str(), low,
                values.empty() ? 0.0 : sum / static_cast<double>(values.size()), high);
  }
}

Status RunProgram(const Options& options) {
  Executable executable = COLLAGE_TRY(LoadOrCompile(options.program));
  const std::vector<Tensor> inputs = COLLAGE_TRY(GatherInputs(options.inputs, executable.inputs()));
  const std::vector<Tensor> outputs = COLLAGE_TRY(executable.Run(inputs));
  if (!options.output.empty()) COLLAGE_TRY_STATUS(WriteOutputs(options.output, executable.outputs(), outputs));
  PrintSummary(executable.outputs(), outputs);
  return {};
}

}  // namespace

void AddRunCommand(CLI::App& app, int& code) {
  CLI::App* command = app.add_subcommand("run", "Run a compiled file (or a model, which is compiled first) once");
  auto options = std::make_shared<Options>();
  AddProgramOptions(*command, options->program);
  AddInputOptions(*command, options->inputs);
  command->add_option("--output", options->output, "Write each output to this folder as <output name>.npy");
  command->callback([options, &code] {
    const Status status = RunProgram(*options);
    code = status ? kDone : ReportError(status.error());
  });
}

}  // namespace collage::tools
