#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collage/runtime/executable.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage::tools {

/// Where the inputs of a run come from, as given on the command line.
struct InputOptions {
  std::vector<std::string> files;  ///< "name=file.npy"
  std::string archive;             ///< file.npz
  std::optional<uint64_t> random_seed;
};

void AddInputOptions(CLI::App& command, InputOptions& options);

/// One tensor for each input that is wanted, of exactly its type. Errors name the input: missing, unknown, wrong shape or dtype.
Result<std::vector<Tensor>> GatherInputs(const InputOptions& options, const std::vector<NamedType>& wanted);

/// "data=1x3x224x224" to a name and its extents. Errors quote the text.
Result<std::pair<std::string, Shape>> ParseShapeOption(const std::string& text);

/// "90s", "5m", "1.5h", "30d" or seconds without a unit; seconds. Errors quote the text.
Result<double> ParseDuration(const std::string& text);

/// Checks that the text of an option is a number from `low` to `high`.
CLI::Validator NumberBetween(double low, double high);

}  // namespace collage::tools
