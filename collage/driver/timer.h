#pragma once

#include <memory>

#include "collage/ir/expr.h"
#include "collage/measure/kernel_timer.h"

namespace collage {

/// Times kernels in a worker process, but those of backends that only this process has (backend/registry.h); or all in this one where
/// `isolated` is false or the worker program is not there (a warning then).
/// Processes that compile kernels at the same time are at most so many as threads, eight, and one for two GiB of the machine's memory.
std::unique_ptr<KernelTimer> MakeTimer(bool isolated, int threads);

/// How kernels are timed in a compile of such a budget, seconds: patience with others is as much shorter as the budget is than the usual
/// one.
MeasureOptions WithinBudget(MeasureOptions measure, double budget);

/// How kernels of this model are timed: between two uses of a weight a run touches all others, so that much is evicted between samples: a
/// power of two, so that models of one size share prices, and no more than a core's own caches hold, which is quickly written; what kernels
/// take in their network is measured there (PriceInContext). Weights of less than 1 MiB stay in the caches.
MeasureOptions ForModel(const Function& function, MeasureOptions measure);

}  // namespace collage
