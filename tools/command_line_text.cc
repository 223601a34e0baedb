#include "tools/command_line_text.h"

namespace collage::tools {
namespace {

OptionText DescribeOption(const CLI::Option& option) {
  OptionText text;
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  const bool is_flag = option.get_items_expected_max() == 0;
  if (!is_flag) text.value = option.get_positional() ? option.get_name(true) : option.get_type_name();
  text.description = option.get_description();
  text.preset = option.get_default_str();
  text.is_required = option.get_required();
  text.repeats = option.get_items_expected_max() > 1;
  return text;
}

CommandText DescribeCommand(const CLI::App& app, std::vector<std::string> path) {
  CommandText text{std::move(path), app.get_description(), {}, {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? text.positionals : text.options).push_back(DescribeOption(*option));
  }
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_group().empty()) continue;
    std::vector<std::string> below = text.path;
    below.push_back(command->get_name());
    text.commands.push_back(DescribeCommand(*command, std::move(below)));
  }
  return text;
}

}  // namespace

CommandText Describe(const CLI::App& app) { return DescribeCommand(app, {app.get_name()}); }

}  // namespace collage::tools
