#pragma once

#include <memory>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/backend/xsmm/micro_kernel.h"
#include "collage/ir/op_sequence.h"
#include "collage/op/matrix_product.h"
#include "collage/pattern/rule.h"

namespace collage::xsmm {

/// Attention (Vaswani et al., 2017) as its calls say it: a product of queries and keys, pointwise steps on these scores, a softmax of each
/// row and the product with values. The heads of the result may be put side by side by a transpose. Those of queries, keys and values may
/// be views of what they are cut from, and queries and keys may be scaled on the way.
struct Attention {
  /// Matrices as they lie in memory. All numbers are elements.
  struct Matrices {
    size_t value = 0;              ///< index into the sequence's values
    std::vector<int64_t> batches;  ///< where the matrix for each batch of scores begins
    int64_t row_stride = 0;        ///< from row to row
    int64_t column_stride = 0;     ///< from column to column; one of the two is 1
  };

  /// What a score becomes before the softmax.
  struct Step {
    enum class Kind {
      kScale,   ///< times `number`
      kShift,   ///< plus `number`
      kAdd,     ///< plus what a tensor has there
      kSelect,  ///< `number` where a tensor of bool says `replaced`
    };
    Kind kind = Kind::kScale;
    float number = 0;
    bool replaced = false;
    size_t value = 0;                   ///< the tensor: index into the sequence's values
    std::vector<int64_t> batches = {};  ///< where its matrix for each batch begins, in elements
    int64_t row_stride = 0;             ///< from row to row of scores
    bool is_one_a_row = false;          ///< all scores of a row see the same element
  };

  const OpSequence* sequence = nullptr;
  Matrices queries;       ///< rows lie as they are
  Matrices keys, values;  ///< as the right operand of their product: [depth][columns]
  MatrixProduct scores;   ///< queries [rows][depth] x keys [depth][columns]
  MatrixProduct mixture;  ///< softmax of these x values
  std::vector<Step> steps;
  /// Of the batches that follow one another in the result, so many are heads, whose rows lie side by side in one row; 1: none are.
  int64_t heads_side_by_side = 1;
};

/// Whether a function has a softmax behind a product: then it is attention, or nothing that this backend takes.
bool MayBeAttention(const OpSequence& sequence);

/// Of such a function, which must outlive the result. Errors name what no loop here does.
Result<Attention> ParseAttention(const OpSequence& sequence);

/// How matches of it grow: from the product of queries and keys, which are computed both. Views stand in front.
FusionRule AttentionRule();

/// Rows of scores that are computed together: the variant's own first.
TuningParameter AttentionTuning(const Attention& attention);

/// One thread takes some rows of scores through all of it, in its second-level cache. All tensors are plain.
Result<std::unique_ptr<Kernel>> MakeAttentionKernel(const Attention& attention, int64_t rows, int threads);

}  // namespace collage::xsmm
