#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace collage::xsmm {

/// Of a tile. Four of the six rows that the library keeps in registers beside a panel: high enough for what a call costs, low enough for a
/// tile and the rows that it reads to stay in the nearest cache.
constexpr int64_t kTileRows = 24;

/// A constant operand as it is packed when the kernel is made: for each matrix, for each panel, for each term, [depth][columns of the
/// panel]. Element (term, d, c) of a matrix is at first + term_offsets[term] + d * depth_stride + c * column_stride. All in elements.
struct Packing {
  int64_t depth_stride = 0;
  int64_t column_stride = 0;
  std::vector<int64_t> matrices = {0};      ///< where each begins
  std::vector<int64_t> term_offsets = {0};  ///< one for each term
};

/// A product cut into tiles, to which dense layers, batches of products and convolutions in each layout come down:
///   result[rows][columns] = sum over terms of row_operand[rows][depth] x panel_operand[depth][columns]
/// Columns lie side by side in the panel operand and in the result; they are what vector registers hold. All numbers are elements.
struct Tiling {
  struct Batch {
    int64_t row, panel, result;  ///< where its matrices begin
    int64_t channel = 0;         ///< of its first column, or row
  };
  /// What rows have in common.
  struct Kind {
    int64_t depth = 0;                       ///< of each term
    int64_t row_stride = 0;                  ///< from row to row of the row operand
    int64_t result_stride = 0;               ///< from row to row
    std::vector<int64_t> row_terms = {0};    ///< where each term begins in the row operand
    std::vector<int64_t> panel_terms = {0};  ///< and at which row of a packed panel
  };
  struct Rows {
    int64_t offset, result;  ///< from the beginning of the batch's, of the first row
    int64_t count;
    int64_t channel = 0;  ///< of the first row, where channels lie along rows
    size_t kind = 0;
  };
  struct Panel {
    int64_t offset, result;
    int64_t count;        ///< columns
    int64_t channel = 0;  ///< of the first column, where channels lie along columns
  };
  enum class Order {
    kPanels,  ///< all rows pass by one panel before the next panel comes
    kRows,    ///< all panels pass by a few rows before the next rows come
  };

  std::vector<Batch> batches = {{0, 0, 0}};
  std::vector<Rows> rows;
  std::vector<Panel> panels;
  std::vector<Kind> kinds = {};  ///< of rows
  int64_t depth = 0;             ///< of a term as it is packed, and of panels that are not
  int64_t panel_stride = 0;      ///< from depth to depth of the panel operand; unless it is packed

  size_t row_value = 0;  ///< indices into the sequence's values
  size_t panel_value = 0;
  std::optional<Packing> packing = {};  ///< the panel operand is a constant
  /// The panel operand is stored [columns][depth]: each thread transposes the panel that it comes to.
  bool transposes_panels = false;
  bool channels_along_rows = false;
  /// Where not zero, packed panels are read in parts of at most so many depths, for all rows of a tile each, and the next part is fetched
  /// into the second-level cache meanwhile. Of kinds with one term, by panels.
  int64_t fetched_depth = 0;
  Order order = Order::kPanels;

  [[nodiscard]] size_t TileCount() const { return batches.size() * rows.size() * panels.size(); }
};

/// Cuts [0, count) into as few parts as can be of at most `most` elements, which are equal as far as whole `unit`s go: no part is a small
/// remainder, which would run at a fraction of the speed. (begin, size) each.
std::vector<std::pair<int64_t, int64_t>> CutEvenly(int64_t count, int64_t most, int64_t unit);

}  // namespace collage::xsmm
