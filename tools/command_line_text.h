#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace collage::tools {

// What the command line understands, read from its definitions, for shells and for man.

/// An option or a positional argument.
struct OptionText {
  std::vector<std::string> names;  ///< "-o", "--output"; empty for a positional
  std::string value;               ///< what it takes, "TEXT"; empty for a flag
  std::string description;
  std::string preset;  ///< its default; empty where none is said
  bool is_required = false;
  bool repeats = false;
};

/// A command and those below it.
struct CommandText {
  std::vector<std::string> path;  ///< "collage", "cache", "stats"
  std::string description;
  std::vector<OptionText> options;
  std::vector<OptionText> positionals;
  std::vector<CommandText> commands;
};

/// All commands but hidden ones.
CommandText Describe(const CLI::App& app);

/// Scripts that complete commands, options and file names.
std::string BashCompletion(const CommandText& collage);
std::string ZshCompletion(const CommandText& collage);
std::string FishCompletion(const CommandText& collage);

/// A page in the language of man(7). `version` as `collage --version` prints it.
std::string ManPage(const CommandText& command, const std::string& version);

}  // namespace collage::tools
