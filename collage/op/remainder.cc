#include "collage/op/remainder.h"

#include <algorithm>

namespace collage {
namespace {

std::string Counted(size_t count, const std::string& what) { return std::to_string(count) + " " + what + (count == 1 ? "" : "s"); }

/// "32 or 4".
std::string RowCounts(const std::vector<Remainder::RowProgram>& programs) {
  std::string text;
  for (const Remainder::RowProgram& program : programs) text += (text.empty() ? "" : " or ") + std::to_string(program.rows);
  return text;
}

}  // namespace

std::string Remainder::Summary() const {
  const std::string reason = ", since extents depend on data: " + parts_.reason;
  size_t placed = 0;
  size_t regions = 0;
  std::string rows;
  for (const Region& region : parts_.regions) {
    if (region.programs.empty()) continue;
    placed += region.end - region.begin;
    regions += 1;
    rows = RowCounts(region.programs);
  }
  if (regions == 0) return Counted(node_count(), "node") + reason;
  return std::to_string(node_count() - placed) + " of " + Counted(node_count(), "node") + reason + "; the others are " +
         Counted(regions, "region") + " of rows, which run " + rows + " rows at a time";
}

}  // namespace collage
