#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collage/support/result.h"
#include "collage/tensor/tensor_type.h"

namespace collage::provider {

/// Extents of inputs by name.
using InputShapes = std::map<std::string, Shape>;

/// What an application may say about compiling and running (`Options()` in options.cc lists it).
struct ProviderOptions {
  std::filesystem::path programs;     ///< folder of compiled programs
  std::optional<double> budget;       ///< seconds for what a session compiles; that of collage_compile where absent
  std::vector<InputShapes> profiles;  ///< of inputs with symbolic extents; empty: there are none such
  std::string compile = "{}";         ///< for collage_compile, without the budget, as JSON
  std::string load = "{}";            ///< for collage_program_load, as JSON
  std::string identity;               ///< of all that a program depends on beside its model
};

/// Errors name the option and what would be right.
Result<ProviderOptions> ReadProviderOptions(const std::map<std::string, std::string>& options);

}  // namespace collage::provider
