#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collage/search/recorded.h"

namespace collage {

/// Questions of the form "what if"; as a user writes them.
struct WhatIf {
  std::vector<std::string> forbid;   ///< "dnnl", or "dnnl:conv1", "dnnl:nn.conv2d" for candidates that hold such a node or operator
  std::vector<std::string> pin;      ///< "conv1=dnnl"; an operator's name in place of a node's stands for all its calls
  std::vector<std::string> penalty;  ///< "dnnl:native=12.5": microseconds for running native right after dnnl
};

struct WhatIfAnswer {
  SearchResult before;  ///< the optimum as recorded
  SearchResult after;   ///< the optimum under the conditions, of what was measured
  /// What was never measured might allow less than `after`; never less than this.
  Cost lower_bound;
  /// The plan that the compile chose, at the recorded prices; nothing where the record names none.
  std::optional<Cost> chosen_cost;
};

/// Searches again under conditions, measuring nothing. Errors name the word that is wrong and what would be right, the node and its
/// operator where conditions contradict each other (two pins, a pin on what is forbidden) or leave no cover.
Result<WhatIfAnswer> Answer(const RecordedProblem& recorded, const WhatIf& question);

/// Which candidates conditions exclude, and the transitions they change; for searches that are not from a record.
struct Conditions {
  std::vector<bool> forbidden;                ///< by candidate
  std::vector<std::vector<Cost>> transition;  ///< as in SearchProblem
};
Result<Conditions> Interpret(const RecordedProblem& recorded, const WhatIf& question);

}  // namespace collage
