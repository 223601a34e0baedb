#pragma once

#include <vector>

#include "collage/search/search.h"

namespace collage {

/// The classic placement, which measures nothing: backends take what they support in the order of `priority` (numbers of backends,
/// first served first; the declared order when empty, and always behind it), the largest candidates first, earlier ones first
/// among equals. Where that leaves a node that nobody covers, or a cycle, the least preferred candidate in the way is given up and
/// the taking starts again; where no taking of this kind ends in a cover, the cheapest cover is the answer. Variants are the best
/// for the cover as a whole. The lower bound says only that the price is not negative.
Result<SearchResult> SearchGreedily(const SearchProblem& problem, const std::vector<size_t>& priority = {});

}  // namespace collage
