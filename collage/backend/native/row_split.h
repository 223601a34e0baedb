#pragma once

// Rows of a straight-line function: parts of its tensors that can be computed by themselves, some at a time. A row is one position in the
// leading dimensions, and holds what lies in the others: after a product of [4, 128, 768] with a matrix, 512 rows; for products of batches
// of matrices, one matrix of the batch.

#include <cstdint>
#include <vector>

#include "collage/ir/op_sequence.h"
#include "collage/support/result.h"

namespace collage::native {

struct RowSplit {
  /// Of what all rows share.
  static constexpr int kShared = -1;

  int64_t rows = 1;
  /// For each value of the sequence, how many of its last dimensions lie within a row; or kShared.
  std::vector<int> inner;
};

/// Can the operator of this call, by its name, keep the rows of what it is given apart?
bool KeepsRows(const Expr& call);

/// Of a function around one matrix product. Errors say which operator joins rows, or what lies along them and may not.
Result<RowSplit> SplitAroundProduct(const OpSequence& sequence);
/// Of a function whose first parameter has `rows` rows with `inner` dimensions each.
Result<RowSplit> SplitBehind(const OpSequence& sequence, int64_t rows, int inner);

/// Bytes of a value that belong to one row; zero for what rows share.
size_t BytesOfRow(const OpSequence& sequence, const RowSplit& split, size_t value);
/// The function for so many rows in place of all.
Result<Expr> OfRows(const OpSequence& sequence, const RowSplit& split, int64_t rows);

}  // namespace collage::native
