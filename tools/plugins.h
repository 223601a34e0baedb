#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "collage/support/result.h"

namespace collage::tools {

/// What is wrong with what an option names, although the option is well formed.
class OptionError : public CLI::ParseError {
 public:
  explicit OptionError(const collage::Error& error);
};

/// Adds the backends in these shared objects (AddBackend of backend/registry.h), for this process and those that it starts.
Status UsePlugins(const std::vector<std::string>& files);

/// --plugin; throws OptionError.
void AddPluginOption(CLI::App& command);

}  // namespace collage::tools
