#include <cstdio>
#include <cstdlib>
#include <exception>

#include "collage/runtime/parallel.h"
#include "collage/support/log.h"
#include "tools/command.h"
#include "tools/interrupt.h"

namespace {

int Run(int argc, char** argv) {
  collage::InitialiseLogging();
  collage::PrepareThreadPool();
  collage::tools::InstallInterruptHandler();

  CLI::App app("Collage places the parts of an ONNX model on the libraries and compilers that run them fastest, by measuring.", "collage");
  app.set_version_flag("--version", COLLAGE_VERSION);
  app.require_subcommand(1);
  int code = collage::tools::kDone;
  collage::tools::AddBackendsCommand(app, code);
  collage::tools::AddCompileCommand(app, code);
  collage::tools::AddRunCommand(app, code);
  collage::tools::AddBenchCommand(app, code);
  collage::tools::AddExplainCommand(app, code);
  collage::tools::AddOptCommand(app, code);
  collage::tools::AddQueryCommand(app, code);
  collage::tools::AddCacheCommand(app, code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? collage::tools::kDone : collage::tools::kUserError;
  }
  return code;
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
