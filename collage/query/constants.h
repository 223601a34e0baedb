#pragma once

#include <vector>

#include "collage/query/json_reader.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// What "meta[relay.Constant][i]" stands for in the program of a case.
struct ConstantTable {
  std::vector<Tensor> tensors;
  bool is_given = false;
};

/// {"shape": [..], "dtype": "float32", "fill": 0.5} or with "value": a number or nested lists. Without both the tensor is zero.
Result<Tensor> ReadTensor(const JsonReader& entry);

/// The field "constants" of a case: a list, or an object by number ("0" or "const:0"), of
/// such tensors.
Result<ConstantTable> ReadConstants(const JsonReader& entry);

}  // namespace collage
