#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "collage/ir/module.h"
#include "collage/runtime/program.h"

namespace collage {

/// One partition to compile and call.
struct PartitionCall {
  KernelRecord record;
  /// A Primitive function of tensors (and tuples of them) with its constants inside. Undefined when the kernel comes from a file.
  Expr function;
  std::vector<size_t> inputs;   ///< values, parameters flattened
  std::vector<size_t> outputs;  ///< values, results flattened
};

/// A Program before its kernels are compiled. May also be put together by hand: to time a candidate between given neighbours,
/// say, without building a module.
struct PartitionProgram {
  std::vector<Program::Value> values;
  std::vector<PartitionCall> calls;
  std::vector<Endpoint> inputs;
  std::vector<Endpoint> outputs;
};

struct PartitionProgramOptions {
  /// Compiles Primitive functions without "Compiler".
  std::string default_backend = "native";
  /// Compiles what was left bare: operators that are no views, and functions that are not Primitive.
  std::string fallback_backend = "reference";
  /// Names of the model's inputs and outputs, tuples flattened. When empty: the parameters' names; "output" or "output0", ...
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
};

/// The main function of a partitioned module as calls of partitions. Understood are calls of Primitive functions (literals or
/// functions of the module; attributes "Compiler", "global_symbol", "Variant", "Device"), tuples, projections, lets, constants and view
/// operators, which become views. Partitions of kInPlace (in_place.h) become slices and joins. Anything else that can be computed becomes
/// a partition of the fallback backend. Errors on control flow and on functions used as values. No recursion over depth.
Result<PartitionProgram> ToPartitionProgram(const IRModule& module, const PartitionProgramOptions& options = {});

/// Names of the operators inside a Primitive function in evaluation order, composites opened.
Result<std::vector<std::string>> OperatorNames(const Function& function);

}  // namespace collage
