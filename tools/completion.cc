#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>

#include "tools/command_line_text.h"

namespace collage::tools {
namespace {

/// The command and all below it, each after the one that it is below.
void Flatten(const CommandText& command, std::vector<const CommandText*>& all) {
  all.push_back(&command);
  for (const CommandText& below : command.commands) Flatten(below, all);
}

std::vector<const CommandText*> AllOf(const CommandText& collage) {
  std::vector<const CommandText*> all;
  Flatten(collage, all);
  return all;
}

std::string Path(const CommandText& command) { return fmt::format("{}", fmt::join(command.path, " ")); }

std::vector<std::string> NamesBelow(const CommandText& command) {
  std::vector<std::string> names;
  for (const CommandText& below : command.commands) names.push_back(below.path.back());
  return names;
}

std::vector<std::string> OptionNames(const CommandText& command, bool only_with_value) {
  std::vector<std::string> names;
  for (const OptionText& option : command.options) {
    if (!only_with_value || !option.value.empty()) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

/// The first sentence, or what stands before the first colon of a long one.
std::string Shortly(const std::string& description) {
  const size_t end = std::min({description.find(". "), description.find(": "), description.find("; "), description.size()});
  return description.substr(0, end);
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) text.replace(at, what.size(), by);
  return text;
}

/// Inside of single quotes of a shell.
std::string Quoted(const std::string& text) { return "'" + Replaced(text, "'", "'\\''") + "'"; }

/// Inside of fish's, where a backslash escapes.
std::string QuotedForFish(const std::string& text) { return "'" + Replaced(Replaced(text, "\\", "\\\\"), "'", "\\'") + "'"; }

}  // namespace

std::string BashCompletion(const CommandText& collage) {
  std::string below;
  std::string options;
  std::string with_value;
  for (const CommandText* command : AllOf(collage)) {
    const std::string path = Quoted(Path(*command));
    if (!command->commands.empty()) below += fmt::format("    {}) commands='{}' ;;\n", path, fmt::join(NamesBelow(*command), " "));
    options += fmt::format("    {}) options='{}' ;;\n", path, fmt::join(OptionNames(*command, false), " "));
    const std::vector<std::string> names = OptionNames(*command, true);
    if (!names.empty()) with_value += fmt::format("    {}) valued=' {} ' ;;\n", path, fmt::join(names, " "));
  }
  return fmt::format(R"(# bash completion for {0}
_{0}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} path={0} commands options valued i
  COMPREPLY=()
  for ((i = 1; i <= COMP_CWORD; ++i)); do
    commands='' valued=''
    case $path in
{1}    esac
    case $path in
{3}    esac
    ((i == COMP_CWORD)) && break
    if [[ $valued == *" ${{COMP_WORDS[i]}} "* ]]; then
      # Its value comes next: a file, more often than not.
      ((++i == COMP_CWORD)) && return
    elif [[ " $commands " == *" ${{COMP_WORDS[i]}} "* ]]; then
      path+=" ${{COMP_WORDS[i]}}"
    fi
  done
  case $path in
{2}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [[ -n $commands ]]; then
    COMPREPLY=($(compgen -W "$commands" -- "$word"))
  fi
}}
complete -o default -F _{0} {0}
)",
                     collage.path.front(), below, options, with_value);
}

std::string ZshCompletion(const CommandText& collage) {
  const auto function_of = [](const CommandText& command) { return fmt::format("_{}", fmt::join(command.path, "_")); };
  const auto bracketed = [](const std::string& text) {
    return Replaced(Replaced(Replaced(Shortly(text), "[", "\\["), "]", "\\]"), ":", "\\:");
  };
  std::string text = fmt::format("#compdef {}\n", collage.path.front());
  for (const CommandText* command : AllOf(collage)) {
    text += fmt::format("\n{}() {{\n", function_of(*command));
    if (!command->commands.empty()) {
      text += "  local line state\n  local -a commands=(\n";
      for (const CommandText& below : command->commands)
        text += fmt::format("    {}\n", Quoted(below.path.back() + ":" + Replaced(Shortly(below.description), ":", "\\:")));
      text += "  )\n";
    }
    text += "  _arguments -C";
    for (const OptionText& option : command->options) {
      for (const std::string& name : option.names) {
        const std::string star = option.repeats ? "*" : "";
        const std::string value = option.value.empty() ? "" : ":" + Replaced(option.value, ":", "\\:") + ":_files";
        text += " \\\n    " + Quoted(star + name + "[" + bracketed(option.description) + "]" + value);
      }
    }
    if (command->commands.empty()) {
      text += " \\\n    '*:file:_files'\n}\n";
      continue;
    }
    text += " \\\n    '1:command:->command' '*::argument:->argument'\n  case $state in\n";
    text += "    command) _describe command commands ;;\n    argument)\n      case $line[1] in\n";
    for (const CommandText& below : command->commands) text += fmt::format("        {}) {} ;;\n", below.path.back(), function_of(below));
    text += "      esac ;;\n  esac\n}\n";
  }
  // Whether it was loaded by name from a folder of functions, or read.
  return text + fmt::format("\nif [[ $funcstack[1] = _{0} ]]; then\n  _{0} \"$@\"\nelse\n  compdef _{0} {0}\nfi\n", collage.path.front());
}

std::string FishCompletion(const CommandText& collage) {
  const std::string& program = collage.path.front();
  std::string text = "# fish completion for " + program + "\n";
  for (const CommandText* command : AllOf(collage)) {
    // "__fish_seen_subcommand_from cache; and not __fish_seen_subcommand_from stats prune"
    std::string condition;
    for (size_t i = 1; i < command->path.size(); ++i)
      condition += (i > 1 ? "; and " : "") + std::string("__fish_seen_subcommand_from ") + command->path[i];
    const std::vector<std::string> names = NamesBelow(*command);
    if (!names.empty())
      condition += (condition.empty() ? "not " : "; and not ") + fmt::format("__fish_seen_subcommand_from {}", fmt::join(names, " "));
    const std::string begin = fmt::format("complete -c {} -n {}", program, QuotedForFish(condition));
    for (const CommandText& below : command->commands)
      text += fmt::format("{} -f -a {} -d {}\n", begin, below.path.back(), QuotedForFish(Shortly(below.description)));
    for (const OptionText& option : command->options) {
      text += begin;
      for (const std::string& name : option.names) text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!option.value.empty()) text += " -r";
      text += " -d " + QuotedForFish(Shortly(option.description)) + "\n";
    }
  }
  return text;
}

}  // namespace collage::tools
