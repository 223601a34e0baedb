#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collage/ir/op_sequence.h"
#include "collage/pattern/rule.h"
#include "collage/support/result.h"

namespace collage::element_code {

/// One kernel of a generated program: an element (or a row) of one tensor for each item.
struct Launch {
  std::string name;
  size_t items = 0;
  double flops = 0;            ///< of all items, as far as the operator that they compute is concerned
  std::vector<size_t> values;  ///< whose buffers it takes, in the order of its arguments; the last is written
};

/// Code for a straight-line function. Element by element: operators that work on one element at a time, and movement of data, are
/// computed where they are read; what has loops of its own has a kernel of its own.
struct GeneratedSource {
  std::string text;
  std::vector<Launch> launches;
  std::vector<size_t> constants;     ///< values whose elements kernels read
  std::vector<size_t> intermediate;  ///< values between kernels
};

/// Writes a kernel around statements that compute item `i` (an int), read arrays of floats by these names, and write `out`. The statements
/// use C's operators, INFINITY and NAN, min and max of ints, and of floats fabs, exp, log, sqrt, erf, tanh, ceil, floor and fmax.
using KernelText = std::function<std::string(const std::string& name, const std::vector<std::string>& inputs, const std::string& body)>;

/// Whether there is code for a call of an operator; refusals begin with the name of the backend.
Verdict Supports(const std::string& backend, const Expr& call);
/// Whether there is code for all of a function. Each result has a step of its own that computes it.
bool SupportsSequence(const OpSequence& sequence);
/// Of what is supported.
Result<GeneratedSource> GenerateSource(const OpSequence& sequence, const KernelText& kernel);

}  // namespace collage::element_code
