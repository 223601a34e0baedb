#include <cstdio>
#include <memory>

#include "collage/explain/report.h"
#include "collage/lower/save.h"
#include "tools/command.h"
#include "tools/output.h"

namespace collage::tools {
namespace {

struct Options {
  std::string file;
  bool json = false;
};

Status Explain(const Options& options) {
  if (!COLLAGE_TRY(IsProgramFile(options.file))) return Fail(options.file + ": is no compiled file; make one with collage compile");
  const std::string metadata = COLLAGE_TRY(ReadProgramMetadata(options.file));
  if (options.json) {
    std::printf("%s\n", metadata.c_str());
    return {};
  }
  Result<CompileReport> report = ReportFromJson(metadata);
  if (!report) return Fail(report.error().At(options.file));
  std::printf("%s", ExplanationText(*report).c_str());
  return {};
}

}  // namespace

void AddExplainCommand(CLI::App& app, int& code) {
  CLI::App* command =
      app.add_subcommand("explain", "Say for each operator of a compiled file who runs it, at what price, and who came second");
  auto options = std::make_shared<Options>();
  command->add_option("file", options->file, "A compiled file")->required();
  command->add_flag("--json", options->json, "As JSON");
  command->callback([options, &code] {
    const Status status = Explain(*options);
    code = status ? kDone : ReportError(status.error());
  });
}

}  // namespace collage::tools
