#pragma once

#include "collage/backend/backend.h"

namespace collage::dnnl_backend {

/// The table, longest first: patterns, and rules by which chains behind a product grow.
std::vector<PatternRule> PatternTable();
/// Products that code generators may call for some of the rows. With constant weights a bias is one with them; all else that may follow,
/// generated code does as well, where it follows at all.
std::vector<PatternRule> CallableTable();

}  // namespace collage::dnnl_backend
