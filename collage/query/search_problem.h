#pragma once

#include <string>
#include <vector>

#include "collage/candidate/rule.h"
#include "collage/query/prices.h"
#include "collage/query/program.h"
#include "collage/search/search.h"

namespace collage {

/// A candidate of the cheapest cover; host nodes are left out.
struct ChosenCandidate {
  SubGraph sub_graph;
  size_t backend;  ///< position among the specs
  double price;
};

/// The cheapest cover of one function by the letter of the search: every node of the dataflow graph is covered once, by a candidate or
/// by the host for nothing; a candidate costs its price and the penalty. `specs` in the order of preference, `compilers` their names.
/// Errors name the operator that no valid and priced candidate covers, and the rules that were asked.
Result<std::vector<ChosenCandidate>> CheapestCover(const NamedFunction& function, const std::vector<CandidatePartition>& candidates,
                                                   const std::vector<SpecPointer>& specs, const FixedPrices& prices, double penalty);

}  // namespace collage
