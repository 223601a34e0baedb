#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "collage/backend/xsmm/bound_tail.h"
#include "collage/backend/xsmm/forms.h"
#include "collage/backend/xsmm/operands.h"
#include "collage/backend/xsmm/program.h"
#include "collage/backend/xsmm/strassen_loops.h"

namespace collage::xsmm {

/// Rows that follow one another, times a constant matrix.
struct StrassenProblem {
  int64_t rows = 0;
  int64_t depth = 0;
  int64_t columns = 0;
  int64_t depth_stride = 0;  ///< of the matrix, in elements
  int64_t column_stride = 0;
};

/// Whether the algorithm fits, and takes less work than a usual product.
bool IsStrassenWorthwhile(const StrassenProblem& problem, const InstructionSet& instructions);

/// The product of the chain's first two operands in tiles of twice so many rows and two panels, each of which is cut in quarters.
Form StrassenForm(std::string name, Layout data, Layout result, const StrassenProblem& problem, const InstructionSet& instructions);

/// A product by Strassen's algorithm, applied once to each tile: seven products of quarters take the place of eight. Its rounding errors
/// are bounded as those of the usual product are, by a larger constant and by the norms of the matrices (Higham, "Accuracy and Stability
/// of Numerical Algorithms", chapter 23). Rows of a tile whose sums are not finite are multiplied as usual: what one of them holds must not
/// reach the others.
class StrassenProgram final : public Program {
 public:
  static Result<std::shared_ptr<const Program>> Make(const Chain& chain, const Form& form, const StrassenProblem& problem,
                                                     const InstructionSet& instructions, int64_t tile_rows, int threads);

  [[nodiscard]] size_t pieces() const override { return row_shares_.size() * column_shares_.size(); }
  [[nodiscard]] size_t scratch_bytes() const override { return scratch_ * sizeof(float); }
  void Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const override;

 private:
  struct Cut {
    int64_t first, count;
    [[nodiscard]] int64_t upper() const { return (count + 1) / 2; }
    [[nodiscard]] int64_t lower() const { return count / 2; }
  };
  /// Of all row cuts, or column cuts.
  struct Share {
    size_t begin, end;
  };
  /// Of a size of tile, by where the left operand lies: among the sums, or in the data.
  struct Kernels {
    MicroKernel set_of_sum, add_of_sum;
    MicroKernel set_of_data, add_of_data, set_of_lower_data, add_of_lower_data;
  };
  /// Of a run of one piece.
  struct Memory {
    std::span<const void* const> inputs;
    const float* data;
    float* result;
    float* scratch;
  };
  /// Row cut and column cut, with the sums of its rows.
  struct Tile {
    size_t row_cut, column_cut;
    const float* sums;  ///< null where they are not finite
  };
  /// Of a tile, a panel for each product, and one more for usual products.
  struct Weights {
    const float* products;
    const float* rest;
  };

  void CutShares(const InstructionSet& instructions, int64_t tile_rows, int64_t threads);
  Status PackWeights(const float* weights);
  Result<Kernels> MakeKernels(const Cut& rows, int64_t panel) const;
  Status MakeAllKernels();
  void SetScratch();
  [[nodiscard]] const float* RowsOf(const Memory& memory, const Cut& rows) const { return memory.data + rows.first * problem_.depth; }
  [[nodiscard]] bool SumRows(const Cut& rows, const Memory& memory, float* sums) const;
  void Multiply(const Tile& tile, const Memory& memory) const;
  void MultiplyByQuarters(const Tile& tile, const Memory& memory) const;
  void MultiplyAsUsual(const Tile& tile, const Memory& memory) const;
  [[nodiscard]] int64_t PanelOf(const Cut& columns) const { return problem_.depth / 2 * columns.lower(); }
  [[nodiscard]] TailTile TileOf(const Cut& rows, const Cut& columns) const;
  void Store(const Cut& rows, const Cut& columns, float* product, const Memory& memory) const;

  StrassenProblem problem_;
  StrassenLoops loops_{};
  std::vector<Cut> rows_, columns_;                // of tiles: both halves together
  std::vector<Share> row_shares_, column_shares_;  // a piece has one of each
  size_t rows_of_group_ = 1;                       // row cuts whose sums are in scratch memory at once
  Operands operands_;
  Source data_;
  std::vector<Weights> weights_;                // by column cut
  std::vector<std::vector<size_t>> kernel_of_;  // by row cut and column cut
  std::vector<Kernels> kernels_;
  BoundTail tail_;
  int64_t sum_row_ = 0;     // elements from row to row of a sum
  int64_t sum_stride_ = 0;  // from sum to sum
  size_t product_ = 0;      // from product to product, and to where sums begin
  size_t slot_ = 0;
  size_t scratch_ = 0;
};

}  // namespace collage::xsmm
