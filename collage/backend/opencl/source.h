#pragma once

#include <string>
#include <vector>

#include "collage/ir/op_sequence.h"
#include "collage/pattern/rule.h"
#include "collage/support/result.h"

namespace collage::opencl {

/// One kernel of a generated program: an element (or a row) of one tensor for each work-item.
struct Launch {
  std::string name;
  size_t items = 0;
  std::vector<size_t> values;  ///< whose buffers it takes, in the order of its arguments; the last is written
};

/// OpenCL C for a straight-line function. Element by element: operators that work on one element at a time, and movement of data, are
/// computed where they are read; what has loops of its own has a kernel of its own.
struct GeneratedSource {
  std::string text;
  std::vector<Launch> launches;
  std::vector<size_t> constants;     ///< values whose elements kernels read
  std::vector<size_t> intermediate;  ///< values between kernels
};

/// Whether there is code for a call of an operator.
Verdict Supports(const Expr& call);
/// Of operators that are supported.
Result<GeneratedSource> GenerateSource(const OpSequence& sequence);

}  // namespace collage::opencl
