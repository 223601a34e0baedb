#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collage/runtime/shape_profile.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// What runs around blocks of straight-line code, as functions over numbered tensors: control flow, and the choice among profiles. A flat
/// model of one profile is one block and has none of this.
struct ControlProgram {
  struct Step {
    enum class Kind {
      kBlock,   ///< runs a block
      kCall,    ///< calls a function
      kBranch,  ///< calls one of two
    };
    Kind kind = Kind::kBlock;
    size_t callee = 0;  ///< block or function; of a branch the one taken where the condition holds
    std::vector<size_t> inputs;
    std::vector<size_t> outputs;
    size_t condition = 0;  ///< of a branch: a bool without dimensions
    size_t otherwise = 0;  ///< of a branch: the function taken where the condition does not hold
    std::vector<size_t> otherwise_inputs;
  };
  /// Tensors are numbered within a function, its parameters first. Each is a parameter, a constant or the output of one earlier step.
  struct Function {
    std::string name;
    std::vector<TensorType> types;  ///< one a tensor
    size_t parameters = 0;
    std::vector<std::pair<size_t, Tensor>> constants;
    std::vector<Step> steps;
    std::vector<size_t> results;
    std::vector<std::string> result_names = {};  ///< of an entry that names them otherwise than the program does; else empty
    std::string failure = {};                    ///< what a call of it fails with; empty for one that may run
  };
  std::vector<Function> functions;
  /// So many of the first functions may be entered, one a profile: the one that takes what a run is given. No two take the same types.
  size_t entries = 1;
};

/// The tensors that a block, or a function, takes and gives.
struct Signature {
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
};

Signature SignatureOf(const ControlProgram::Function& function);

/// The block that does all that a function does, when there is one: a run of the function is a run of the block.
std::optional<size_t> OnlyBlockOf(const ControlProgram::Function& function);

/// Errors when a number is out of range, a tensor is used before it is there or given twice, types disagree, or two
/// entries take the same types.
Status CheckControlProgram(const ControlProgram& program, const std::vector<Signature>& blocks);

/// Those of the entries, in order, once the program has passed CheckControlProgram; `outputs` where an entry has no names of its own.
/// Errors when there are not as many names.
Result<std::vector<ShapeProfile>> ShapeProfilesOf(const ControlProgram& program, const std::vector<std::string>& inputs,
                                                  const std::vector<std::string>& outputs);

}  // namespace collage
