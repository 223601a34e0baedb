#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include "tools/command_line_text.h"

namespace collage::tools {
namespace {

/// Text of man(7): nothing in it is a request, and hyphens can be copied as they are.
std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else
      escaped += c;
  }
  // At the beginning of a line these begin a request.
  return !escaped.empty() && (escaped[0] == '.' || escaped[0] == '\'') ? "\\&" + escaped : escaped;
}

std::string Bold(const std::string& text) { return "\\fB" + Escaped(text) + "\\fR"; }
std::string Italic(const std::string& text) { return "\\fI" + Escaped(text) + "\\fR"; }

std::string Synopsis(const CommandText& command) {
  std::string text = Bold(fmt::format("{}", fmt::join(command.path, " ")));
  for (const OptionText& option : command.options) {
    if (option.is_required) text += " " + Bold(option.names.back()) + " " + Italic(option.value);
  }
  text += " [" + Italic("options") + "]";
  for (const OptionText& positional : command.positionals) {
    const std::string name = Italic(positional.value) + (positional.repeats ? " ..." : "");
    text += " " + (positional.is_required ? name : "[" + name + "]");
  }
  if (!command.commands.empty()) text += " " + Italic("command");
  return text;
}

std::string Description(const OptionText& option) {
  std::string text = option.description.empty() ? "See the synopsis" : option.description;
  if (!option.preset.empty() && option.preset != "\"\"") text += " (default: " + option.preset + ")";
  return Escaped(text) + ".\n";
}

std::string Options(const std::vector<OptionText>& options) {
  std::string text;
  for (const OptionText& option : options) {
    std::string names;
    for (const std::string& name : option.names) names += (names.empty() ? "" : ", ") + Bold(name);
    if (!option.value.empty()) names += (names.empty() ? "" : " ") + Italic(option.value);
    text += ".TP\n" + names + "\n" + Description(option);
  }
  return text;
}

/// Of a command whose own commands are too few for pages of their own.
std::string Below(const CommandText& command) {
  std::string text = ".SH COMMANDS\n";
  for (const CommandText& below : command.commands) {
    const bool has_page = command.path.size() == 1;
    if (has_page) {
      text += ".TP\n" + Bold(below.path.back()) + "\n" + Escaped(below.description) + ".\nSee " +
              Bold(command.path[0] + "-" + below.path.back()) + "(1).\n";
      continue;
    }
    text += ".SS " + Escaped(fmt::format("{}", fmt::join(below.path, " "))) + "\n" + Escaped(below.description) + ".\n.P\n" +
            Synopsis(below) + "\n" + Options(below.positionals) + Options(below.options);
  }
  return text;
}

}  // namespace

std::string ManPage(const CommandText& command, const std::string& version) {
  const std::string name = fmt::format("{}", fmt::join(command.path, "-"));
  std::string title = name;
  for (char& c : title) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  std::string text = fmt::format(".TH {} 1 \"\" \"{}\" \"User Commands\"\n", Escaped(title), Escaped(version));
  text += ".SH NAME\n" + Escaped(name) + " \\- " + Escaped(command.description) + "\n";
  text += ".SH SYNOPSIS\n" + Synopsis(command) + "\n";
  if (!command.positionals.empty()) text += ".SH ARGUMENTS\n" + Options(command.positionals);
  text += ".SH OPTIONS\n" + Options(command.options);
  if (!command.commands.empty()) text += Below(command);
  text +=
      ".SH EXIT STATUS\n0 when it is done, 1 when the answer of a comparison is no, 2 when something in the input can be mended; one line "
      "then says what.\n";
  if (command.path.size() > 1) text += ".SH SEE ALSO\n" + Bold(command.path[0]) + "(1)\n";
  return text;
}

}  // namespace collage::tools
