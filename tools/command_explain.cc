#include <cstdio>
#include <memory>

#include "collage/explain/report.h"
#include "collage/explain/what_if_report.h"
#include "collage/lower/save.h"
#include "collage/support/file.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/report_page.h"

namespace collage::tools {
namespace {

struct Options {
  std::string file;
  bool json = false;
  bool operators = false;
  std::string html;
  bool predicted = false;
  WhatIf question;

  [[nodiscard]] ExplanationDetail Detail() const { return operators ? ExplanationDetail::kOperators : ExplanationDetail::kPartitions; }
  [[nodiscard]] bool IsQuestion() const { return !question.forbid.empty() || !question.pin.empty() || !question.penalty.empty(); }
};

/// What the file says of one profile.
struct ProfileAnswer {
  CompileReport report;
  RecordedProblem recorded;
  WhatIfAnswer answer;
};

/// Searches again from what the file recorded; nothing is measured, and neither backends nor model are needed.
Result<ProfileAnswer> AnswerFor(const Options& options, const std::string& metadata) {
  ProfileAnswer answer;
  answer.report = COLLAGE_TRY(ReportFromJson(metadata));
  answer.recorded = COLLAGE_TRY(RecordedOfMetadata(metadata));
  Result<WhatIfAnswer> found = Answer(answer.recorded, options.question);
  if (!found) return Fail(found.error());
  answer.answer = std::move(*found);
  return answer;
}

Status AnswerQuestion(const Options& options, const std::string& metadata) {
  Result<std::vector<std::string>> profiles = MetadataOfProfiles(metadata);
  if (!profiles) return Fail(profiles.error().At(options.file));
  std::string text;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const std::string& profile : *profiles) {
    const Result<ProfileAnswer> found = AnswerFor(options, profile);
    if (!found) return Fail(found.error().At(options.file));
    if (profiles->size() > 1) text += "profile " + ProfileName(found->report) + "\n";
    text += WhatIfText(found->recorded, options.question, found->answer, options.Detail());
    nlohmann::ordered_json answer = {{"inputs", nlohmann::ordered_json::object()}};
    for (const auto& [name, shape] : found->report.inputs) answer["inputs"][name] = shape;
    answer.update(nlohmann::ordered_json::parse(WhatIfJson(found->recorded, options.question, found->answer)));
    json.push_back(std::move(answer));
  }
  if (json.size() > 1)
    json = {{"profiles", std::move(json)}};
  else
    json = json[0];
  std::printf("%s", options.json ? (json.dump(2) + "\n").c_str() : text.c_str());
  return {};
}

Status WritePage(const Options& options, const std::string& metadata) {
  AtomicFile file = COLLAGE_TRY(AtomicFile::Create(options.html));
  const Result<std::string> page = PageOf(options.file, metadata, !options.predicted);
  if (!page) return Fail(page.error().At(options.file));
  COLLAGE_TRY_STATUS(file.Append(*page));
  return file.Commit();
}

Status Explain(const Options& options) {
  if (!COLLAGE_TRY(IsProgramFile(options.file))) return Fail(options.file + ": is no compiled file; make one with collage compile");
  const std::string metadata = COLLAGE_TRY(ReadProgramMetadata(options.file));
  if (!options.html.empty()) return WritePage(options, metadata);
  if (options.IsQuestion()) return AnswerQuestion(options, metadata);
  if (options.json) {
    const Result<std::string> report = ReportOfMetadata(metadata);
    if (!report) return Fail(report.error().At(options.file));
    std::printf("%s\n", report->c_str());
    return {};
  }
  Result<CompileReport> report = ReportFromJson(metadata);
  if (!report) return Fail(report.error().At(options.file));
  std::printf("%s", ExplanationText(*report, options.Detail()).c_str());
  return {};
}

}  // namespace

void AddExplainCommand(CLI::App& app, int& code) {
  CLI::App* command =
      app.add_subcommand("explain", "Say for each partition of a compiled file who runs it, at what price, and who came second");
  auto options = std::make_shared<Options>();
  command->add_option("file", options->file, "A compiled file")->required();
  CLI::Option* json = command->add_flag("--json", options->json, "As JSON");
  CLI::Option* operators = command->add_flag("--operators", options->operators, "A line for each operator instead of each partition");
  CLI::Option* html = command->add_option("--html", options->html,
                                          "Write a report to look at in a browser to this file, which needs no network: graph, time line "
                                          "of one run, plans, roofline, and what each node would cost elsewhere. Runs the program, which "
                                          "is trusted as a shared library is");
  html->excludes(json)->excludes(operators);
  command->add_flag("--predicted", options->predicted, "With --html: do not run the program; its time line then has predicted times")
      ->needs(html);
  command
      ->add_option("--forbid", options->question.forbid,
                   "What if a backend may not be used (dnnl), or not for a node of the model (dnnl:conv1) or an operator (dnnl:nn.conv2d)? "
                   "Searches again from the recorded "
                   "prices, measuring nothing, and prints the difference. May be repeated, as the next two")
      ->excludes(html)
      ->allow_extra_args(false);
  command
      ->add_option("--pin", options->question.pin,
                   "What if a node of the model must run on a backend: conv1=dnnl, or an operator, nn.conv2d=dnnl, with all its calls")
      ->excludes(html)
      ->allow_extra_args(false);
  command->add_option("--penalty", options->question.penalty, "What if running B right after A cost this many microseconds: A:B=12.5")
      ->excludes(html)
      ->allow_extra_args(false);
  command->callback([options, &code] {
    const Status status = Explain(*options);
    code = status ? kDone : ReportError(status.error());
  });
}

}  // namespace collage::tools
