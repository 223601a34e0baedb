#pragma once

// The function of a kernel in which partitions of other backends run at the same time. Its body calls their functions, which are Primitive
// and say:
//   Compiler   the backend that runs it
//   Variant    which of that backend's variants for the whole team it was in the plan that it comes from
//   Threads    how many the team had there
//   Share      the number of the share of the team, a thread, that runs it
// What one share makes no other reads. So threads wait for each other at the end of the kernel alone.

#include <string>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/runtime/execution_plan.h"

namespace collage::side_by_side {

/// A partition, on one thread.
struct Member {
  const Backend* backend;
  Expr function;
  Variant variant;  ///< of the device with one thread
  Program::KernelCall call;
};

/// What one thread runs.
struct Share {
  std::vector<Program::Value> values;
  std::vector<Member> members;  ///< in the order in which they run; calls are of `values`
  std::vector<size_t> inputs;   ///< for each value that enters, which of the function's tensors it is
  std::vector<size_t> outputs;  ///< likewise for what leaves
  std::vector<Endpoint> entering;
  std::vector<Endpoint> leaving;
  EndpointLayouts layouts;
};

struct Shares {
  std::vector<Share> shares;
  std::vector<Layout> inputs;   ///< of the function
  std::vector<Layout> outputs;  ///< likewise
  std::string name;             ///< of the variant: "dnnl direct/aBcd16b | xsmm tiles, native default"
};

/// Members get the variant of their name for one thread, or where there is none the first of the same layouts: which is fastest on one
/// thread is not what is asked, but which the neighbours fit. Errors say why a function is none of such partitions.
Result<Shares> ToShares(const Function& function, const Device& device);

}  // namespace collage::side_by_side
