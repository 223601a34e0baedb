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
  int lanes = 1;               ///< that share an item; as many of them follow each other
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

/// Elements that a kernel reads, stored as element_code/types.h says.
struct Array {
  std::string name;
  DType dtype = DType::kFloat32;
  bool is_constant = false;
};

/// How a language writes what is generated.
struct Language {
  /// A kernel around statements that compute item `i` (an int) and write `out`, an array like the inputs. The statements use C's operators,
  /// INFINITY and NAN, min and max of ints, and of floats fabs, exp, log, pow, sqrt, erf, tanh, ceil, floor and fmax, and the conversions
  /// of element_code/types.h. Where an item has several lanes they also use `lane`, the number of one, and across_sum, across_max and
  /// across_min, which combine a float of each lane.
  std::function<std::string(const std::string& name, const std::vector<Array>& inputs, const Array& out, const std::string& body,
                            int lanes)>
      kernel;
  /// An element of an array as it is stored, which these statements read; the index is an expression of ints.
  std::function<std::string(const Array& array, const std::string& index)> element;
  /// How many items share a row, where an operator takes rows. 1: a row is one item's.
  int lanes = 1;
};

/// Whether there is code for a call of an operator; refusals begin with the name of the backend.
Verdict Supports(const std::string& backend, const Expr& call);
/// Whether there is code for all of a function. Each result has a step of its own that computes it.
bool SupportsSequence(const OpSequence& sequence);
/// Whether some operator of it takes rows, which lanes can share.
bool HasRows(const OpSequence& sequence);
/// Of what is supported.
Result<GeneratedSource> GenerateSource(const OpSequence& sequence, const Language& language);

}  // namespace collage::element_code
