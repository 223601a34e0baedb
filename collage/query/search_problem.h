#pragma once

#include <string>
#include <vector>

#include "collage/candidate/rule.h"
#include "collage/query/prices.h"
#include "collage/query/program.h"

namespace collage {

/// The spec of a compiler ("native" without one): its rule in `rules`, which only native may lack, and where `add_maximal` the largest
/// regions beside it. `query` is where an error is placed.
Result<SpecPointer> SpecFor(const std::string& compiler, const JsonReader& query, const std::optional<JsonReader>& rules, bool add_maximal);

/// A candidate of the cheapest cover; host nodes are left out.
struct ChosenCandidate {
  SubGraph sub_graph;
  size_t backend;  ///< position among the specs
  double price;
};

/// The cheapest cover of one function, searched as a compile searches it: the same problem and searcher, with prices from the query, one
/// variant on plain tensors for each candidate, and the penalty in every price. Where candidates hold more than calls of operators, or
/// operators lie inside of an if or a function literal, it is the same problem over every node of the graph: each is covered once, by a
/// candidate or by the host for nothing. `specs` in the order of preference.
/// Errors name the operator that no valid and priced candidate covers, and the rules that were asked.
Result<std::vector<ChosenCandidate>> CheapestCover(const NamedFunction& function, const std::vector<CandidatePartition>& candidates,
                                                   const std::vector<SpecPointer>& specs, const FixedPrices& prices, double penalty);

}  // namespace collage
