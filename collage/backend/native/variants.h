#pragma once

#include <string>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/ir/op_sequence.h"

namespace collage::native {

/// The ways to run a supported function: schedules, and blocked layouts where the loops do not care.
std::vector<Variant> ListVariants(const OpSequence& sequence, const Device& device);
/// What of a variant's schedule can be tuned: width of vectors, tasks for each thread, and the register tile of products or how far
/// pointwise loops are unrolled. The schedule's own numbers come first.
std::vector<TuningParameter> ListTuning(const OpSequence& sequence, const Device& device, const Variant& variant);
/// Do the layouts of a variant fit the function's tensors?
bool IsVariantOf(const OpSequence& sequence, const Variant& variant);
/// The schedule that a variant's name begins with: "default" or "serial".
std::string ScheduleOf(const Variant& variant);

}  // namespace collage::native
