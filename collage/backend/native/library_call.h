#pragma once

// A native function may hold one function that is labelled by a library (Composite="dnnl.dense_bias"): it stands for a call of that
// library's kernel from inside of ours. Labels of our own, and of nobody, are inlined.

#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/support/result.h"

namespace collage::native {

/// A native function cut at its call.
struct LibraryCall {
  std::string library;  ///< "dnnl"
  /// What the library computes, constants inside. Its parameters are the whole function's with these numbers.
  Expr function;
  std::vector<size_t> inputs;
  /// What is generated behind it. The first parameter is what the library gives, the others are the whole function's with these numbers.
  Expr rest;
  std::vector<size_t> rest_inputs;
};

/// Does the function call a library of the registry?
bool CallsLibrary(const Function& function);
/// Errors on more than one call, and where something is computed in front of it.
Result<LibraryCall> CutAtLibraryCall(const Function& function);

}  // namespace collage::native
