#pragma once

#include <span>
#include <string>
#include <vector>

#include "collage/support/result.h"
#include "collage/tensor/tensor_type.h"

namespace collage {

/// An equation such as "bij,bjk->bik" with its letters resolved: one loop for each letter, those of the result first.
struct Einsum {
  Shape loops;                             ///< extents
  size_t result_rank = 0;                  ///< the first so many loops are the dimensions of the result
  std::vector<std::vector<size_t>> terms;  ///< for each operand the loop of each of its dimensions
};

/// "..." stands for the same leading dimensions in each term that has it, which broadcast; without "->" the result has the
/// letters that occur once, in alphabetical order. After a call has been made it cannot fail on its arguments.
Result<Einsum> ReadEinsum(const std::string& equation, std::span<const TensorType> operands);

}  // namespace collage
