#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collage/ir/module.h"

namespace collage {

/// A rewrite of a module, as a value. `before` and `after` show what it does, in the text form, for documentation.
struct Pass {
  std::string name;  ///< "fold_constants": by this it is run alone or switched off
  std::function<Result<IRModule>(const IRModule&)> run;
  std::string before;
  std::string after;
};

/// What every backend likes, in the order in which it pays: constants are folded first, so that the other passes see them;
/// algebra makes padding and views go away, so that normalisation finds the convolution it follows; what has become equal or
/// useless is removed last, but for what each user of integers wants for itself.
std::vector<Pass> SafeGlobalPasses();

struct PassOptions {
  /// Names of passes that are left out; unknown names are an error.
  std::vector<std::string> disabled;
  /// Called after each pass with what it made and how long it took.
  std::function<void(const Pass&, const IRModule&, double seconds)> on_pass;
};

/// Runs passes in order and verifies the module after each; an error names the pass.
Result<IRModule> RunPasses(IRModule module, const std::vector<Pass>& passes, const PassOptions& options = {});

}  // namespace collage
