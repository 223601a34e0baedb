#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "collage/backend/xsmm/micro_kernel.h"
#include "collage/backend/xsmm/operands.h"

namespace collage::xsmm {

/// Constant columns that lie anywhere: each is `depth` elements side by side, or zero where it is null.
using ColumnPointers = std::vector<const float*>;

/// packed[d][c] = columns[c][d]. `packed` has room for all.
void PackColumns(const float* const* columns, int64_t count, int64_t depth, float* packed);

/// result[rows][columns] = data[rows][depth] x constant columns, by one thread. Rows follow one another in both.
class PanelProduct {
 public:
  /// Packs the columns into memory of `operands`. Errors where the library declines.
  static Result<PanelProduct> Make(int64_t rows, int64_t depth, const ColumnPointers& columns, const InstructionSet& instructions,
                                   Operands& operands);
  void Run(const float* data, float* result) const;

 private:
  struct Panel {
    int64_t first, count;  // columns
    const float* weights;
  };

  int64_t depth_ = 0;
  int64_t columns_ = 0;
  std::vector<Panel> panels_;
  std::vector<std::pair<int64_t, int64_t>> row_tiles_;
  std::map<std::pair<int64_t, int64_t>, MicroKernel> kernels_;  // by rows and columns
};

}  // namespace collage::xsmm
