#include <cstdio>
#include <memory>
#include <sstream>

#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/ir/verify.h"
#include "collage/op/table.h"
#include "collage/support/file.h"
#include "collage/transform/pass.h"
#include "tools/command.h"
#include "tools/output.h"

namespace collage::tools {
namespace {

struct Options {
  std::string file;
  std::vector<std::string> passes;
  std::string output;
};

Result<std::vector<Pass>> SelectPasses(const std::vector<std::string>& names) {
  std::vector<Pass> known = SafeGlobalPasses();
  known.push_back({"verify", [](const IRModule& module) -> Result<IRModule> { return module; }, "", ""});
  std::vector<Pass> selected;
  for (const std::string& list : names) {
    std::istringstream words(list);
    for (std::string name; std::getline(words, name, ',');) {
      std::string all;
      const Pass* found = nullptr;
      for (const Pass& pass : known) {
        all += (all.empty() ? "" : ", ") + pass.name;
        if (pass.name == name) found = &pass;
      }
      if (!found) return Fail("--pass " + name + ": unknown; there are " + all);
      selected.push_back(*found);
    }
  }
  return selected;
}

Status Optimize(const Options& options) {
  const std::vector<Pass> passes = COLLAGE_TRY(SelectPasses(options.passes));
  const std::string text = COLLAGE_TRY(ReadFile(options.file));
  ParseOptions parse;
  // Text alone has no weights: constants whose type stands behind them are filled with random values, which no pass prints.
  parse.missing_constant = RandomConstants(1);
  Result<ParsedModule> parsed = ParseModule(text, Operators(), parse);
  if (!parsed) return Fail(parsed.error().At(options.file));
  Status verified = Verify(parsed->module);
  if (!verified) return Fail(verified.error().At(options.file));
  const IRModule result = COLLAGE_TRY(RunPasses(std::move(parsed->module), passes));
  const std::string printed = Print(result);
  if (!options.output.empty()) return WriteFileAtomically(options.output, printed);
  std::fputs(printed.c_str(), stdout);
  return {};
}

}  // namespace

void AddOptCommand(CLI::App& app, int& code) {
  CLI::App* command = app.add_subcommand("opt", "Run single passes over a program in text form and print the result");
  auto options = std::make_shared<Options>();
  command->add_option("file", options->file, "A program in Relay's text form")->required();
  command->add_option("--pass", options->passes, "Passes in order, by name (repeat, or separate by commas)")->required();
  command->add_option("-o,--output", options->output, "Write to this file instead of standard output");
  command->callback([options, &code] {
    const Status status = Optimize(*options);
    code = status ? kDone : ReportError(status.error());
  });
}

}  // namespace collage::tools
