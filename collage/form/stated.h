#pragma once

// What is asked of the rule of a user, who may be wrong.

#include "collage/form/form.h"

namespace collage {

/// Whether the replacements give the originals' types and values on the reference executor, to what rounding explains, for inputs
/// that suit the originals, six numbers of each at least. A replacement may read what the originals read, and constants.
Verdict ComputesTheSame(const DataflowGraph& graph, const FoundForm& form, const std::function<bool()>& should_stop = {});

/// With the value in place of each new call all of whose arguments are constants. Errors of the reference executor.
Result<Expr> WithConstantsComputed(const DataflowGraph& graph, const Expr& replacement);

}  // namespace collage
