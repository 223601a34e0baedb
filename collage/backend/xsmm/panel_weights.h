#pragma once

#include <cstdint>
#include <functional>

#include "collage/backend/xsmm/forms.h"

namespace collage::xsmm {

/// Constant weights of a product as PanelProgram packs them: number * scale + offset, by columns and blocks of the depth. The functions
/// hold the tensors that they read.
struct PanelWeights {
  int64_t bits = 32;  ///< of a number: 4 or 8, signed integers; 32, float32
  int64_t block = 1;  ///< of the depth, whole words of 32 bits
  /// numbers[depth][count] of `count` columns from `first` on, in the lowest bits, the others zero.
  std::function<void(int64_t first, int64_t count, uint32_t* numbers)> read;
  std::function<float(int64_t column, int64_t block)> scale = {};   ///< none: one; those of 32 bits have none
  std::function<float(int64_t column, int64_t block)> offset = {};  ///< none: zero
};

/// Those of a matrix of float32, stored [columns][depth] where it is transposed, else [depth][columns].
PanelWeights FloatWeights(const Chain& chain, bool is_transposed);
/// The chain's integers of 8 bits, or else its weights rounded to such, a scale for each column. Errors where weights are not finite.
Result<PanelWeights> EightBitWeights(const Chain& chain);
/// Those of nn.matmul_nbits. Errors where they are not constant, of 2 bits, or in blocks that fill no whole words.
Result<PanelWeights> NBitsWeights(const Chain& chain);
/// Its errors, without reading weights.
Status CheckNBitsWeights(const Chain& chain);

}  // namespace collage::xsmm
