#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// Control flow around blocks of straight-line code, as functions over numbered tensors. A flat model is one block and has none of this.
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
  };
  std::vector<Function> functions;  ///< the first is entered
};

/// The tensors that a block, or a function, takes and gives.
struct Signature {
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
};

Signature SignatureOf(const ControlProgram::Function& function);

/// Errors when a number is out of range, a tensor is used before it is there or given twice, or types disagree.
Status CheckControlProgram(const ControlProgram& program, const std::vector<Signature>& blocks);

}  // namespace collage
