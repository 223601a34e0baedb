#pragma once

#include "collage/driver/plan_measurer.h"

namespace collage {

/// What whole plans take, end to end, for a search that asks. Kept, so that an equal compile searches in the same way and measures nothing.
class WholePlans {
 public:
  /// `evidence` gets what is found beside. Without a measurer nothing is measured. All must outlive it.
  WholePlans(const Placement& placement, Pricer& pricer, PlanMeasurer* measurer, std::vector<Evidence>& evidence)
      : placement_(placement), pricer_(pricer), measurer_(measurer), evidence_(evidence) {}

  /// Invalid where a kernel of it fails or is wrong, or where its time is not known and there is none to find it out; the first plan, with
  /// which a search begins, is measured in any case.
  Cost TimeOf(const std::vector<SearchChoice>& cover);
  /// The first error of the cache or of building a plan.
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  Result<Cost> Find(const std::vector<SearchChoice>& cover);

  const Placement& placement_;
  Pricer& pricer_;
  PlanMeasurer* measurer_;
  std::vector<Evidence>& evidence_;
  bool has_begun_ = false;
  Status status_;
};

}  // namespace collage
