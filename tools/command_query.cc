#include <memory>

#include "collage/query/query.h"
#include "collage/support/file.h"
#include "tools/command.h"
#include "tools/output.h"

namespace collage::tools {
namespace {

struct Options {
  std::string file;
  std::string json = "-";
};

Status Answer(const Options& options) {
  const std::string text = COLLAGE_TRY(ReadFile(options.file));
  Result<Json> answers = AnswerQueries(text);
  if (!answers) return Fail(answers.error().At(options.file));
  return WriteJson(options.json, *answers);
}

}  // namespace

void AddQueryCommand(CLI::App& app, int& code) {
  CLI::App* command = app.add_subcommand("query", "Ask any stage of the partitioner: programs, rules and prices in JSON, answers in JSON");
  auto options = std::make_shared<Options>();
  command->add_option("file", options->file, "One case or a list of cases (docs/query.md)")->required();
  command->add_option("--json", options->json, "Write the answers to this file instead of standard output");
  command->callback([options, &code] {
    const Status status = Answer(*options);
    code = status ? kDone : ReportError(status.error());
  });
}

}  // namespace collage::tools
