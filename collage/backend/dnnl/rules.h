#pragma once

#include "collage/backend/backend.h"

namespace collage::dnnl_backend {

/// The pattern table, longest patterns first.
std::vector<PatternRule> PatternTable();

}  // namespace collage::dnnl_backend
