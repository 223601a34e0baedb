#include "collage/backend/native/panel_plan.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "collage/backend/native/supports.h"

namespace collage::native {
namespace {

int64_t DividedUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

double SecondLevelCacheBytes() {
  constexpr long kUsual = 1L << 20;
  const long told = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  return static_cast<double>(told > 0 ? told : kUsual);
}

// How many rows lie between aligned addresses of every tensor that has rows; a power of two.
int64_t AlignedRows(const PanelPlan& plan) {
  constexpr size_t kAlignment = 64;
  int64_t rows = 1;
  const auto consider = [&](const OpSequence& sequence, const RowSplit& split, size_t value) {
    const size_t bytes = BytesOfRow(sequence, split, value);
    if (bytes > 0) rows = std::max(rows, static_cast<int64_t>(kAlignment / std::gcd(kAlignment, bytes)));
  };
  for (const size_t value : plan.library.parameters) consider(plan.library, plan.library_split, value);
  for (const size_t value : plan.rest.parameters) consider(plan.rest, plan.rest_split, value);
  for (const size_t value : plan.rest.results) consider(plan.rest, plan.rest_split, value);
  return rows;
}

}  // namespace

Result<PanelPlan> PlanPanels(const Function& function) {
  PanelPlan plan;
  plan.parameters = function.parameters.size();
  plan.call = COLLAGE_TRY(CutAtLibraryCall(function));
  plan.library = COLLAGE_TRY(ToOpSequence(*plan.call.function->As<Function>()));
  plan.rest = COLLAGE_TRY(ToOpSequence(*plan.call.rest->As<Function>()));
  if (plan.rest.steps.empty()) return Fail("nothing follows what the library gives");
  plan.library_split = COLLAGE_TRY(SplitAroundProduct(plan.library));
  const int inner = plan.library_split.inner[plan.library.results[0]];
  plan.rest_split = COLLAGE_TRY(SplitBehind(plan.rest, plan.library_split.rows, inner));
  if (const Verdict verdict = SupportsSequence(plan.rest); !verdict.accepted) return Fail(verdict.reason);
  return plan;
}

std::vector<int64_t> PanelHeights(const PanelPlan& plan, const Device& device) {
  constexpr std::array<double, 2> kSharesOfCache = {0.75, 1.5};
  // Register tiles of products are a few rows high; what is left over at a panel's end costs as much as a whole one.
  constexpr int64_t kStep = 16;
  const int64_t rows = plan.library_split.rows;
  const auto bytes = static_cast<double>(std::max<size_t>(1, BytesOfRow(plan.library, plan.library_split, plan.library.results[0])));
  const int inner = plan.library_split.inner[plan.library.results[0]];
  const int64_t step = std::max(AlignedRows(plan), inner == 1 ? kStep : 1);
  std::vector<int64_t> heights;
  for (const double share : kSharesOfCache) {
    const auto wished = std::max<int64_t>(1, static_cast<int64_t>(share * SecondLevelCacheBytes() / bytes));
    const int64_t panels_of_thread = DividedUp(rows, wished * device.threads);
    const int64_t height = DividedUp(DividedUp(rows, panels_of_thread * device.threads), step) * step;
    if (std::find(heights.begin(), heights.end(), height) == heights.end()) heights.push_back(height);
  }
  return heights;
}

}  // namespace collage::native
