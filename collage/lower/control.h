#pragma once

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

/// The blocks, lowered by themselves and in their order, with the control flow around them. Names are those of inputs and outputs of the
/// whole, tuples flattened; none: "input", "output", numbered where there are several.
Result<LoweredModel> JoinBlocks(ControlProgram control, std::vector<LoweredModel> blocks, const std::vector<std::string>& input_names,
                                const std::vector<std::string>& output_names, const Device& device);

/// A module that OutlineBlocks has made, ready to run: its blocks may be partitioned, or not.
Result<LoweredModel> LowerControl(const IRModule& outlined, const LowerOptions& options);

/// Control flow around a program that has none, which takes and gives this: a function whose only step is to run it.
ControlProgram AroundOneBlock(const ShapeProfile& flat);

std::vector<std::string> NamesOf(const std::vector<Endpoint>& endpoints);

/// The executables of blocks as one program.
Result<Executable> JoinExecutables(const ControlProgram& control, std::vector<Executable> blocks, const std::vector<Endpoint>& inputs,
                                   const std::vector<Endpoint>& outputs, const Device& device);

}  // namespace collage
