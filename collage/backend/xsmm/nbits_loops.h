#pragma once

// Products of few rows with weights of 4 or 8 bits in blocks, each with scales of its own, which are widened in registers: the weights,
// which are read once, are what such a product waits for. Compiled once for each instruction set.

#include <cstdint>

namespace collage::xsmm {

/// result[rows][columns] = sum over blocks of scale * (data x weights) + offset * (sum of the data), each over the depth of the block.
/// Numbers are elements.
struct NBitsTile {
  const float* data;
  int64_t data_row;  ///< from row to row
  int64_t rows, depth;
  int64_t block;  ///< elements of the depth, whole words of 32 bits
  /// Block by block: scales[columns] of float32, offsets[columns] where there are sums, then words[words of a block][columns], in which the
  /// first weight is in the lowest bits and all are signed. Columns in whole vectors; blocks and words are filled up.
  const uint32_t* weights;
  const float* sums;  ///< of the data, [rows][blocks], from row to row `sums_row`; null where all offsets are zero
  int64_t sums_row;
  int64_t columns;  ///< at most four vectors, the last of which need not be whole
  float* result;
  int64_t result_row;
};

using NBitsLoop = void (*)(const NBitsTile&);

/// For vectors of so many elements, 16 with AVX-512 and 8 with AVX2, and weights of so many bits.
NBitsLoop NBitsLoopFor(int64_t lanes, int64_t bits);

/// sums[blocks] = of the data in each block.
void SumBlocks(const float* data, int64_t depth, int64_t block, float* sums);

}  // namespace collage::xsmm
