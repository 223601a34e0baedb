#pragma once

#include <functional>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/candidate/rule.h"
#include "collage/dataflow/extraction.h"
#include "collage/form/form.h"
#include "collage/search/search.h"

namespace collage {

/// One way to run a candidate, and under which key its price is found. What it reads and writes lies on one device.
struct PricedVariant {
  Variant variant;
  Cost cost = Cost::Unknown();
  size_t device = 0;  ///< 0: the host
};

/// A candidate with everything that the search and the rewriting need to know of it. Of one that computes something of a form, nodes and
/// tensors are those of the formed graph.
struct PricedCandidate {
  CandidatePartition candidate;
  ExtractedFunction extracted;
  Expr permitted = {};  ///< the function with the user's permit, for variants that use it; null: there is none
  size_t backend = 0;   ///< position in the declared order
  std::vector<PricedVariant> variants;
  bool is_partition = true;  ///< false: stays with the host, which makes it a view of its input

  /// Of which a variant is a kernel.
  [[nodiscard]] const Expr& FunctionOf(const Variant& variant) const { return variant.uses_precision ? permitted : extracted.function; }
};

/// A search problem over the operator calls of a function. What is no call (parameters, constants, tuples, projections) stays
/// with the host at no price, so it is not even a node here: tensors are traced through it to the calls that define them.
/// Constants that enter a candidate are converted when the program is loaded, so they are no tensors of the problem.
struct FunctionProblem {
  SearchProblem problem;
  std::vector<PostDfsIndex> nodes;  ///< of each search node
  std::vector<IndexSet> own;        ///< by candidate: the search nodes that it computes; without forms all that are inside
  std::vector<TensorSource> tensors;
  std::vector<TensorType> tensor_types;
  std::vector<Layout> layouts;  ///< of each layout number; 0 is plain, on the host
  std::vector<size_t> devices;  ///< of each layout number: where a tensor lies is to the search a part of its layout
};

/// Price of bringing a tensor from one layout to another, both on the host.
using ConversionPrice = std::function<Cost(const TensorType&, const Layout& from, const Layout& to)>;

/// `candidates` keep their positions: choice.candidate indexes them. Conversions are priced when the search first asks.
/// Errors on a function that is not straight-line.
///
/// With forms the nodes are those of the function and of all its forms. A cover takes either what a form stands for or the form: whoever
/// computes the first gate of what it stands for covers the form's nodes too, and whoever computes a root of the form covers what that
/// root stands for. So each exact cover is that of one set of forms, and each cover of each such set is one.
Result<FunctionProblem> BuildProblem(const DataflowGraph& graph, const std::vector<PricedCandidate>& candidates, size_t backend_count,
                                     ConversionPrice conversion);
Result<FunctionProblem> BuildProblem(const FormedGraph& formed, const std::vector<PricedCandidate>& candidates, size_t backend_count,
                                     ConversionPrice conversion);

}  // namespace collage
