#pragma once

#include <memory>

#include "collage/backend/dnnl/plan.h"

namespace collage::dnnl_backend {

/// As Plans, remembered: models repeat their layers, and asking the library for a primitive costs up to a tenth of a millisecond for each
/// of the dozen ways. Plans name tensors by number and hold no weights, so functions of float32 that
/// differ in their weights share them.
std::shared_ptr<const std::vector<Plan>> CachedPlans(const OpSequence& sequence, int threads, DType stored = DType::kFloat32);

}  // namespace collage::dnnl_backend
