#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>

#include "collage/backend/host_reference_team.h"
#include "collage/driver/reference_program.h"
#include "collage/tensor/npy.h"
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/on_demand.h"
#include "tools/output.h"
#include "tools/program.h"

namespace collage::tools {
namespace {

struct Options {
  ProgramOptions program;
  InputOptions inputs;
  std::string output;
  bool reference = false;
};

/// An output name may hold slashes, which become folders (PyTorch's begin with one), but it may not lead out of the output folder.
Result<std::filesystem::path> FilePath(const std::filesystem::path& folder, const std::string& name) {
  const std::filesystem::path relative = std::filesystem::path(name + ".npy").relative_path().lexically_normal();
  if (*relative.begin() == "..") return Fail("output '" + name + "': its name leads out of " + folder.string());
  std::error_code error;
  std::filesystem::create_directories((folder / relative).parent_path(), error);
  if (error) return Fail((folder / relative).parent_path().string() + ": cannot be made: " + error.message());
  return folder / relative;
}

Status WriteOutputs(const std::filesystem::path& folder, const std::vector<NamedType>& types, const std::vector<Tensor>& outputs) {
  std::map<std::filesystem::path, std::string> written;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::filesystem::path path = COLLAGE_TRY(FilePath(folder, types[i].name));
    const auto [other, is_new] = written.emplace(path, types[i].name);
    if (!is_new && other->second == types[i].name) continue;  // the same value, given twice
    if (!is_new) return Fail("outputs '" + other->second + "' and '" + types[i].name + "' would both be written to " + path.string());
    COLLAGE_TRY_STATUS(WriteNpy(path, outputs[i]));
  }
  return {};
}

void PrintSummary(const std::vector<NamedType>& types, const std::vector<Tensor>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].dtype() == DType::kString) {
      std::printf("%s: %s\n", types[i].name.c_str(), ToString(types[i].type).c_str());
      continue;
    }
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

Status Report(const Options& options, const std::vector<NamedType>& types, const std::vector<Tensor>& outputs) {
  if (!options.output.empty()) COLLAGE_TRY_STATUS(WriteOutputs(options.output, types, outputs));
  PrintSummary(types, outputs);
  return {};
}

/// What a run has given; `known` where nothing of it depends on data.
std::vector<NamedType> TypesOf(const Remainder* remainder, const std::vector<NamedType>& known, const std::vector<Tensor>& outputs) {
  if (remainder == nullptr) return known;
  std::vector<NamedType> types;
  for (size_t i = 0; i < outputs.size(); ++i) types.push_back({remainder->outputs()[i].name, outputs[i].type()});
  return types;
}

/// Errors of a run say which file it was of.
Result<std::vector<Tensor>> RunOf(const Options& options, Result<std::vector<Tensor>> outputs) {
  if (!outputs) return Fail(outputs.error().At(options.program.file));
  return outputs;
}

/// The model as it stands, operator by operator on the reference kernels: slow, and what every plan is compared with.
Status RunReference(const Options& options) {
  const CompileOptions compile_options = COLLAGE_TRY(ToCompileOptions(options.program));
  if (compile_options.profiles.size() > 1) return Fail("--reference: several profiles; give each input one --shape");
  const ReferenceProgram program =
      COLLAGE_TRY(ReadReferenceProgram(options.program.file, compile_options.profiles[0], compile_options.constants));
  const GatheredInputs inputs = COLLAGE_TRY(GatherInputs(options.inputs, {{program.inputs, program.outputs}}));
  const HostReferenceTeam team(compile_options.threads);
  const std::vector<Tensor> outputs = COLLAGE_TRY(RunOf(options, program.Run(inputs.tensors)));
  return Report(options, TypesOf(program.remainder.get(), program.outputs, outputs), outputs);
}

Status RunProgram(const Options& options) {
  if (options.reference) return RunReference(options);
  auto [executable, remainder, inputs] = COLLAGE_TRY(PrepareRun(options.program, options.inputs));
  std::vector<Tensor> outputs = COLLAGE_TRY(RunOf(options, executable.Run(inputs.tensors)));
  if (remainder) outputs = COLLAGE_TRY(RunOf(options, RunRemainder(executable, *remainder, outputs)));
  return Report(options, TypesOf(remainder.get(), executable.shape_profiles()[inputs.profile].outputs, outputs), outputs);
}

}  // namespace

void AddRunCommand(CLI::App& app, int& code) {
  CLI::App* command = app.add_subcommand("run", "Run a compiled file (or a model, which is compiled first) once");
  auto options = std::make_shared<Options>();
  AddProgramOptions(*command, options->program);
  AddLoadOptions(*command, options->program);
  AddInputOptions(*command, options->inputs);
  command->add_option("--output", options->output, "Write each output to this folder as <output name>.npy");
  command->add_flag("--reference", options->reference, "Run a model on the reference executor instead of compiling it");
  command->callback([options, &code] {
    if (!options->reference) {
      if (const std::optional<int> done = SuperviseCompiling(options->program)) {
        code = *done;
        return;
      }
    }
    const Status status = RunProgram(*options);
    code = status ? kDone : ReportError(status.error());
  });
}

}  // namespace collage::tools
