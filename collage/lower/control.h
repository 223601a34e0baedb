#pragma once

#include <map>
#include <string>
#include <vector>

#include "collage/lower/lower.h"

namespace collage {

/// The control flow of a module that OutlineBlocks has made, and the names of its blocks in the order in which the program numbers them.
struct ControlOfModule {
  ControlProgram program;
  std::vector<std::string> blocks;
};
/// Errors on computing outside of blocks and on functions as values.
Result<ControlOfModule> ToControlProgram(const IRModule& outlined);

/// A module that OutlineBlocks has made, ready to run: each block from its partitioned module in `placed`, by name, or else as it is.
/// LowerOptions::program names inputs and outputs of the whole.
Result<LoweredModel> LowerControl(const IRModule& outlined, const std::map<std::string, IRModule>& placed, const LowerOptions& options);

/// The blocks' executables and their control flow as one.
Result<Executable> JoinBlocks(const ControlProgram& control, std::vector<Executable> blocks, const std::vector<Endpoint>& inputs,
                              const std::vector<Endpoint>& outputs, const Device& device);

}  // namespace collage
