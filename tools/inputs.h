#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collage/driver/compile.h"
#include "collage/runtime/shape_profile.h"
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

struct GatheredInputs {
  size_t profile = 0;
  std::vector<Tensor> tensors;  ///< one for each input of that profile, of exactly its type
};
/// The inputs of the first profile of a program that fits what is given and the shapes that are `asked` for; what is not given is random
/// where the options say so. Errors name the input: missing, unknown, wrong shape or dtype; or the profiles that there are.
Result<GatheredInputs> GatherInputs(const InputOptions& options, const std::vector<ShapeProfile>& profiles, const InputShapes& asked = {});

/// The first profile of a program that has the shapes that are `asked` for. Errors as of GatherInputs.
Result<size_t> ProfileOf(const InputShapes& asked, const std::vector<ShapeProfile>& profiles);

/// The shapes that are given and asked for, where a program of other shapes might take them: names and element types are right. Errors are
/// those of reading.
Result<std::optional<InputShapes>> OtherShapes(const InputOptions& options, const std::vector<ShapeProfile>& profiles,
                                               const InputShapes& asked);

/// "data=1x3x224x224" to a name and its extents. Errors quote the text.
Result<std::pair<std::string, Shape>> ParseShapeOption(const std::string& text);

/// The shapes of several flags as profiles: the k-th that is given for an input belongs to the k-th profile, and what is given once for an
/// input belongs to all. Errors quote the inputs whose counts do not fit.
Result<std::vector<InputShapes>> ParseProfiles(const std::vector<std::string>& shapes);

/// "90s", "5m", "1.5h", "30d" or seconds without a unit; seconds. Errors quote the text.
Result<double> ParseDuration(const std::string& text);

/// Checks that the text of an option is a number from `low` to `high`.
CLI::Validator NumberBetween(double low, double high);
/// What every --threads is checked by. More than there are processors is the user's to decide, with a warning: a compile of 2 s took 215
/// with 1 000 threads on two processors.
CLI::Validator ThreadCount();

}  // namespace collage::tools
