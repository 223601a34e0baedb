#pragma once

#include "collage/backend/backend.h"

namespace collage::dnnl_backend {

/// The table, longest first: patterns, and rules by which chains behind a product grow.
std::vector<PatternRule> PatternTable();

}  // namespace collage::dnnl_backend
