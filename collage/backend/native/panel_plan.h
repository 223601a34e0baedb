#pragma once

#include <string>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/backend/native/library_call.h"
#include "collage/backend/native/row_split.h"

namespace collage::native {

/// A function that calls a library, and how both parts of it lie along the rows.
struct PanelPlan {
  LibraryCall call;
  OpSequence library;
  RowSplit library_split;
  OpSequence rest;
  RowSplit rest_split;
  size_t parameters = 0;  ///< of the whole function
};

/// Errors say what keeps it from being run by panels.
Result<PanelPlan> PlanPanels(const Function& function);

/// Rows of a panel, a few to choose from: such that what the library gives takes different shares of the second-level cache, that each
/// thread has as many panels, and that panels begin at aligned addresses. A height may be more than there are rows.
std::vector<int64_t> PanelHeights(const PanelPlan& plan, const Device& device);

}  // namespace collage::native
