#pragma once

#include "collage/search/search.h"

namespace collage {

struct OpLevelOptions {
  /// Backends to leave to the graph level, by number.
  std::vector<bool> is_graph_backend;
};

/// The op-level dynamic program of "Collage: Seamless Integration of Deep Learning Backends with Automatic Placement" (Jeon et
/// al., PACT 2022): kernels are taken to be independent, so each costs what its cheapest variant does from plain tensors to plain
/// tensors, and P(s + g) = min over g of P(s) + price(g) + a constant for the change of context (here the mean transition). It
/// sees no layouts between kernels and no pairs of backends, so its cover is the optimum only where those cost nothing; the
/// price that it reports is the true one (PriceOfCover), and the lower bound says only that it is not negative.
Result<SearchResult> SearchOpLevel(const SearchProblem& problem, const OpLevelOptions& options = {});

}  // namespace collage
