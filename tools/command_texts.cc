#include <cstdio>
#include <memory>

#include "tools/command.h"
#include "tools/command_line_text.h"
#include "tools/output.h"
#include "tools/version.h"

namespace collage::tools {
namespace {

Result<std::string> ManPageOf(const CommandText& collage, const std::string& command) {
  if (command.empty()) return ManPage(collage, kVersion);
  for (const CommandText& below : collage.commands) {
    if (below.path.back() == command) return ManPage(below, kVersion);
  }
  return Fail("man: there is no command '" + command + "'; --help lists what there is");
}

}  // namespace

void AddTextCommands(CLI::App& app, int& code) {
  CLI::App* completion = app.add_subcommand("completion", "Print a script that completes what is typed, for a shell: bash, zsh or fish");
  auto shell = std::make_shared<std::string>();
  completion->add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->callback([&app, shell] {
    const CommandText collage = Describe(app);
    const std::string text = *shell == "bash"  ? BashCompletion(collage)
                             : *shell == "zsh" ? ZshCompletion(collage)
                                               : FishCompletion(collage);
    std::fputs(text.c_str(), stdout);
  });
  CLI::App* man = app.add_subcommand("man", "Print the page of a command for man, or of collage itself");
  // For the build, which installs the pages.
  man->group("");
  auto command = std::make_shared<std::string>();
  man->add_option("command", *command);
  man->callback([&app, &code, command] {
    const Result<std::string> page = ManPageOf(Describe(app), *command);
    if (page)
      std::fputs(page->c_str(), stdout);
    else
      code = ReportError(page.error());
  });
}

}  // namespace collage::tools
