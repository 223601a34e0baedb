#pragma once

#include "collage/search/search.h"

namespace collage {

struct ExactOptions {
  double most_seconds = 60;
};

/// The cheapest acyclic exact cover by integer programming, with the solver's own lower bound: a certificate that owes nothing to
/// the other searchers. It grows too fast for whole large models; it is for models of some hundred operators and for checking.
///
/// Variables: which variant of which candidate is chosen; which tensor is converted from which layout into which; which backend
/// ran last before each node (a flow, because transitions are paid in the order of first nodes). Cycles are cut off one by one
/// as they appear. Prices are doubles here, so the bound is rounded down by a millionth part; equal prices are not told apart
/// by preference. When the time ends, the best cover found, its bound being what was proven until then.
Result<SearchResult> SearchExactly(const SearchProblem& problem, const ExactOptions& options = {});

}  // namespace collage
