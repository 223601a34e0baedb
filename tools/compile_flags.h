#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "collage/driver/compile.h"
#include "collage/support/result.h"

namespace collage::tools {

/// How a model is compiled, as a command line says it, wherever a command may compile one.
struct CompileFlags {
  std::string budget;
  std::string tune;
  std::string search = CompileOptions::kUsualSearch;
  std::optional<std::string> precision;
  std::string partition_rules;
  std::string forms;
  UserConstraints constraints;
  bool choose_devices = false;
  bool eager = false;
  bool exclusive = false;
  bool cache_only = false;
};

void AddCompileFlags(CLI::App& command, CompileFlags& flags);

/// Into `options`. Errors quote the flag.
Status TakeCompileFlags(const CompileFlags& flags, CompileOptions& options);

}  // namespace collage::tools
