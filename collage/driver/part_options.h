#pragma once

#include <vector>

#include "collage/driver/compile.h"
#include "collage/support/clock.h"

namespace collage {

/// What is placed by itself: a block of control flow, a region for a number of rows, or what is left of the model.
struct CompiledPart {
  std::vector<Expr> functions;
  double work = 0;  ///< in any unit, the same for all parts
};

/// Options of the parts of one compile. Of the budget each has a share by its work, and what it leaves is for those behind it. Flags that
/// name a node are for the parts that have it, and those that name none are for all.
class PartOptions {
 public:
  /// The compile's clock starts. A flag whose node no part has is given to `owner_of_unknown`, whose error says which nodes there are.
  PartOptions(const CompileOptions& options, const std::vector<CompiledPart>& parts, size_t owner_of_unknown);

  /// Of a part that begins now. To be asked once for each part.
  CompileOptions Begin(size_t part);
  /// A part that is there already has its share no longer.
  void Skip(size_t part);
  [[nodiscard]] const UserConstraints& ConstraintsOf(size_t part) const { return constraints_[part]; }
  /// Seconds since the compile began, with those that were spent before it.
  [[nodiscard]] double SecondsSpent() const { return options_.seconds_spent + Clock::SecondsSince(start_); }

 private:
  const CompileOptions& options_;
  Clock::time_point start_ = Clock::now();
  std::vector<UserConstraints> constraints_;
  std::vector<double> shares_;
  double shares_left_ = 0;
};

}  // namespace collage
