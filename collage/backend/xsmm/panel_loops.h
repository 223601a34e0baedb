#pragma once

// Products with weights that come from memory: of 4 or 8 bits, which are widened in registers, or of float32. Compiled once for each
// instruction set.

#include <cstdint>

namespace collage::xsmm {

/// Vectors of columns that one call takes at most.
inline constexpr int64_t kPanelVectors = 4;
/// Rows that share one pass over the weights, where the instruction set has registers for them.
inline constexpr int64_t kPanelRows = 6;

/// Some columns of the weights, packed. Numbers are elements.
struct PackedPanel {
  /// Block by block: scales[columns] of float32, but for weights of 32 bits, which have none; offsets[columns] where there are some; then
  /// words[words of a block][columns], in which the first weight is in the lowest bits. Weights of 32 bits are float32, others signed
  /// integers. Columns in whole vectors; blocks and words are filled up.
  const uint32_t* weights;
  bool has_offsets;
  int64_t depth;
  int64_t block;    ///< elements of the depth, whole words of 32 bits
  int64_t columns;  ///< at most kPanelVectors vectors, the last of which need not be whole
};

/// result[rows][columns] = sum over blocks of scale * (data x weights) + offset * (sum of the data), each over the depth of the block.
/// Numbers are elements.
struct PanelTile {
  PackedPanel panel;
  const float* data;
  int64_t data_row;  ///< from row to row
  int64_t rows;
  const float* sums;  ///< of the data, [rows][blocks], from row to row `sums_row`, where the panel has offsets
  int64_t sums_row;
  float* result;
  int64_t result_row;
};

using PanelLoop = void (*)(const PanelTile&);

/// For vectors of so many elements, 16 with AVX-512 and 8 with AVX2, and weights of 4, 8 or 32 bits.
PanelLoop PanelLoopFor(int64_t lanes, int64_t bits);

/// widened[depth][columns in whole vectors] = weight * scale + offset.
using PanelWidener = void (*)(const PackedPanel& panel, float* widened);

/// Likewise, of weights of 4 or 8 bits.
PanelWidener PanelWidenerFor(int64_t lanes, int64_t bits);

/// sums[blocks] = of the data in each block.
void SumBlocks(const float* data, int64_t depth, int64_t block, float* sums);

}  // namespace collage::xsmm
