#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collage/driver/compile.h"
#include "collage/support/result.h"
#include "tools/compile_flags.h"
#include "tools/default_cache.h"

namespace collage::tools {

/// Options that commands share which take a compiled file or a model.
struct ProgramOptions {
  std::string file;
  std::string constants;
  std::vector<std::string> targets;
  std::vector<std::string> shapes;
  std::string cache;
  int threads = AvailableThreads();
  std::vector<std::string> processors;  ///< "cpu:1=2-3"
  CompileFlags compile;
  bool recompile = false;
  std::string model;  ///< of a compiled file, from which profiles that are missing are compiled; empty: they are errors
};

void AddProgramOptions(CLI::App& command, ProgramOptions& options);
/// Of commands that run what is in a compiled file.
void AddLoadOptions(CLI::App& command, ProgramOptions& options);

/// The shapes that a run is asked for: none where several are, which are profiles to compile.
Result<InputShapes> AskedShapes(const ProgramOptions& options);

/// What the command line says, as options of the driver. Errors quote the flag.
Result<CompileOptions> ToCompileOptions(const ProgramOptions& options);

/// What `--processors` states. Errors quote the flag.
Result<std::vector<CpuStatement>> StatedCpus(const std::vector<std::string>& processors);

/// The file that was given, or the default.
std::string CacheOf(const ProgramOptions& options);

/// What RunSupervised gives where LoadOrCompile or PrepareRun may compile; else nothing.
std::optional<int> SuperviseCompiling(const ProgramOptions& options);

/// CompileModel in a process that a terminal sees and may supervise.
Result<CompiledModel> CompileShown(const std::string& model, CompileOptions options);

/// A compiled file is loaded; a model is compiled in memory first, with progress on standard error.
Result<LoweredModel> LoadOrCompile(const ProgramOptions& options);

}  // namespace collage::tools
