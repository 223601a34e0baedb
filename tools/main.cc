#include <fcntl.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "collage/runtime/parallel.h"
#include "collage/support/log.h"
#include "tools/command.h"
#include "tools/interrupt.h"
#include "tools/output.h"
#include "tools/plugins.h"
#include "tools/supervision.h"
#include "tools/version.h"

namespace {

/// Descriptors 0 to 2 are in use even where the caller closed them: otherwise the next file that is opened would be one of them, and
/// what is printed would go into it.
void OpenStandardStreams() {
  for (int file = 0; file <= 2; ++file) {
    if (::fcntl(file, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) < 0) return;
  }
}

/// CLI11 says of a word that is no command that one is required, and does not say the word.
std::string WhatIsWrong(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> rest = app.remaining();
  if (!app.get_subcommands().empty() || rest.empty() || rest.front().starts_with('-'))
    return std::string(error.what()) + "; --help lists what there is";
  std::string known;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!command->get_group().empty()) known += (known.empty() ? "" : ", ") + command->get_name();
  }
  return "there is no command '" + rest.front() + "'; there are " + known + "; --help says what they do";
}

int Run(int argc, char** argv) {
  OpenStandardStreams();
  collage::InitialiseLogging();
  collage::PrepareThreadPool();
  collage::tools::InstallInterruptHandler(collage::tools::SupervisedActivity() != nullptr);

  CLI::App app("Collage places the parts of an ONNX model on the libraries and compilers that run them fastest, by measuring.", "collage");
  app.set_version_flag("--version", collage::tools::kVersion);
  app.require_subcommand(1);
  int code = collage::tools::kDone;
  collage::tools::AddBackendsCommand(app, code);
  collage::tools::AddCompileCommand(app, code);
  collage::tools::AddRunCommand(app, code);
  collage::tools::AddBenchCommand(app, code);
  collage::tools::AddCompareCommand(app, code);
  collage::tools::AddExplainCommand(app, code);
  collage::tools::AddConvertCommand(app, code);
  collage::tools::AddOptCommand(app, code);
  collage::tools::AddQueryCommand(app, code);
  collage::tools::AddCacheCommand(app, code);
  collage::tools::AddWorkerCommand(app, code);
  for (CLI::App* command : app.get_subcommands({})) collage::tools::AddPluginOption(*command);
  collage::tools::AddTextCommands(app, code);
  try {
    app.parse(argc, argv);
  } catch (const collage::tools::OptionError& error) {
    return collage::tools::ReportError({error.what()});
  } catch (const CLI::ParseError& error) {
    // Help and version come this way as well.
    if (error.get_exit_code() != 0) return collage::tools::ReportError({WhatIsWrong(app, error)});
    app.exit(error);
  }
  if (code == collage::tools::kUserError) return code;
  const collage::Status printed = collage::tools::FlushStandardOutput();
  return printed ? code : collage::tools::ReportError(printed.error());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collage: this is a bug of Collage: %s\n", error.what());
    std::abort();
  }
}
