#pragma once

#include <optional>
#include <vector>

#include "collage/driver/plan.h"

namespace collage {

/// The plan's kernels spread over all CPUs, so that what does not depend on each other runs at the same time; nothing where that promises
/// no gain, or where no kernel may run on another CPU. Each takes the CPU on which it ends first, those with most work behind them first
/// (Topcuoglu, Hariri and Wu, "Performance-Effective and Low-Complexity Task Scheduling for Heterogeneous Computing", 2002). Its cost is
/// when the last one ends. Prices are of kernels that run alone: what two take from each other, caches and memory, only the race tells.
///
/// A plan and no candidate of the search, because prices add up there and what runs at the same time does not.
std::optional<Plan> SideBySide(const Placement& placement, const Plan& plan, const std::vector<Price>& prices);

}  // namespace collage
