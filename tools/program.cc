#include "tools/program.h"

#include <filesystem>

#include "collage/backend/registry.h"
#include "collage/lower/save.h"
#include "collage/runtime/device.h"
#include "tools/inputs.h"
#include "tools/interrupt.h"
#include "tools/supervision.h"
#include "tools/terminal_progress.h"

namespace collage::tools {

void AddProgramOptions(CLI::App& command, ProgramOptions& options) {
  command.add_option("file", options.file, "A compiled file, an ONNX model, or a program in Relay's text")->required();
  command.add_option("--constants", options.constants,
                     "An .npz archive with the constants of a program in Relay's text: meta[relay.Constant][i] is the array i (default: "
                     "NAME.npz beside NAME.relay)");
  command.add_option("--target", options.targets,
                     "A target to use, such as cpu or \"cpu -compiler=dnnl\" (repeat; default: all that is present)");
  command.add_option("--shape", options.shapes,
                     "Shape of an input that the model leaves symbolic: name=1x3x224x224 (repeat). Several for one input make a program of "
                     "several profiles, the k-th of each input the k-th profile; what is given once holds in all. Of a compiled file: the "
                     "profile to take");
  command
      .add_option("--cache", options.cache,
                  "What keeps prices: a SQLite file, or the URL of a PostgreSQL database, postgresql://user@host/database")
      ->default_str(DefaultCache());
  command.add_option("--threads", options.threads, "Threads for all backends together")->check(ThreadCount())->capture_default_str();
  command.add_option(
      "--processors", options.processors,
      "Processors of a CPU beside the host, such as cpu:1=2-3 (repeat). Targets and pins may name it then. The host, cpu:0, has "
      "those that are left. A compiled file keeps them; where it is run, others may be stated for its CPUs");
  AddCompileFlags(command, options.compile);
}

void AddLoadOptions(CLI::App& command, ProgramOptions& options) {
  command.add_flag("--recompile", options.recompile,
                   "Load no machine code from a compiled file: compile its kernels again. A compiled file holds machine code, and is to be "
                   "trusted as a shared library is; use this for one that is not");
  command.add_option(
      "--compile-on-demand", options.model,
      "The model that a compiled file was made of: where no profile takes the shapes of the inputs, one is compiled from it, "
      "once, as the options here say, and kept in FILE.profiles beside the file. Without it such shapes are errors");
}

std::string CacheOf(const ProgramOptions& options) { return options.cache.empty() ? DefaultCache() : options.cache; }

Result<std::vector<CpuStatement>> StatedCpus(const std::vector<std::string>& processors) {
  std::vector<CpuStatement> cpus;
  for (const std::string& text : processors) {
    Result<CpuStatement> cpu = CpuStatement::ParseStated(text);
    if (!cpu) return Fail("--processors " + cpu.error().message);
    cpus.push_back(std::move(*cpu));
  }
  return cpus;
}

Result<CompileOptions> ToCompileOptions(const ProgramOptions& options) {
  CompileOptions compile;
  compile.constants = options.constants;
  compile.targets = options.targets;
  compile.threads = options.threads;
  compile.cpus = COLLAGE_TRY(StatedCpus(options.processors));
  compile.cache = CacheOf(options);
  compile.profiles = COLLAGE_TRY(ParseProfiles(options.shapes));
  COLLAGE_TRY_STATUS(TakeCompileFlags(options.compile, compile));
  return compile;
}

Result<InputShapes> AskedShapes(const ProgramOptions& options) {
  const std::vector<InputShapes> profiles = COLLAGE_TRY(ParseProfiles(options.shapes));
  return profiles.size() == 1 ? profiles[0] : InputShapes();
}

std::optional<int> SuperviseCompiling(const ProgramOptions& options) {
  const Result<bool> is_program = IsProgramFile(options.file);
  if (!is_program || (*is_program && options.model.empty())) return std::nullopt;
  return RunSupervised(CacheOf(options));
}

Result<CompiledModel> CompileShown(const std::string& model, CompileOptions options) {
  options.activity = SupervisedActivity();
  if (options.activity) options.seconds_spent = options.activity->SecondsSinceCreated();
  TerminalProgress terminal(options.budget_seconds, options.seconds_spent);
  options.progress = {[&](const ProgressEvent& event) { terminal.Show(event); }, &InterruptRequested()};
  Result<CompiledModel> compiled = CompileModel(model, options);
  terminal.Clear();
  return compiled;
}

Result<LoweredModel> LoadOrCompile(const ProgramOptions& options) {
  if (COLLAGE_TRY(IsProgramFile(options.file))) {
    const MachineCode machine_code = options.recompile ? MachineCode::kCompileAgain : MachineCode::kLoad;
    BuildOptions build;
    build.device.threads = options.threads;
    build.find_backend = FindBackend;
    build.cpus = COLLAGE_TRY(StatedCpus(options.processors));
    return LoadProgram(options.file, build, machine_code);
  }
  return std::move(COLLAGE_TRY(CompileShown(options.file, COLLAGE_TRY(ToCompileOptions(options)))).lowered);
}

}  // namespace collage::tools
