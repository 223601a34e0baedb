#pragma once

// Which rows of each convolution of a chain one thread computes when. It takes a band of the last one's rows, a few a step; what windows
// need of the rows before is kept from step to step, and computed again at the edges of bands instead of waited for.

#include <cstdint>
#include <span>
#include <vector>

namespace collage::xsmm {

/// Rows [first, last) of an image.
struct RowSpan {
  int64_t first = 0;
  int64_t last = 0;

  [[nodiscard]] int64_t Count() const { return last - first; }
  friend bool operator==(const RowSpan&, const RowSpan&) = default;
};

/// What a convolution reads of its data, along their rows.
struct RowWindow {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t data_rows = 1;  ///< of an image
};

/// The rows of the data from the first to the last that these rows of the result need; padding is none.
RowSpan RowsRead(const RowWindow& window, const RowSpan& results);

/// The rows that each convolution of a chain computes in one step: what the next one reads then and no step before has computed.
using RowStep = std::vector<RowSpan>;

/// `band` of the last one's rows, at most `rows` a step, as even as can be.
std::vector<RowStep> CutIntoSteps(std::span<const RowWindow> windows, const RowSpan& band, int64_t rows);

/// How many rows of the result of each convolution but the last have to be kept: one at least. Row r may lie at r modulo that.
std::vector<int64_t> RowsKept(std::span<const RowWindow> windows, std::span<const RowStep> steps);

}  // namespace collage::xsmm
