#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collage/search/recorded.h"

namespace collage {

/// What it would cost to have a node run by a backend, or why nobody can say.
struct Elsewhere {
  enum class Known {
    kPrice,        ///< `extra` and `choices`
    kNoCandidate,  ///< no rule of the backend takes the node
    kRefused,      ///< every kernel of it was refused
    kNotTimed,     ///< none of its kernels was timed, since none could be part of the cheapest plan
    kNoPlan,       ///< no plan near by has it there
    kNotSearched,  ///< the plan cannot be cut near by, and what is between is too large to search again
  };
  size_t backend = 0;
  Known known = Known::kNoCandidate;
  Cost extra;                              ///< how much dearer the whole plan would be; below zero where it would be cheaper
  std::vector<SearchChoice> choices = {};  ///< that the plan would have instead of chosen ones
};

/// For each node and each other backend the best plan of recorded prices in which that backend runs the node, all else being as near to the
/// chosen plan as is best. Empty where the record names no plan. A node that the plan leaves with the host has none.
std::vector<std::vector<Elsewhere>> FindElsewhere(const RecordedProblem& recorded);

/// The cheapest plan in which a backend runs whatever it has a price for.
struct AlonePlan {
  size_t backend = 0;
  SearchResult plan;
  size_t left_to_others = 0;  ///< partitions of it that another backend runs
};
/// One for each backend that has a price for some node, and for which there is such a plan.
std::vector<AlonePlan> FindAlone(const RecordedProblem& recorded);

}  // namespace collage
