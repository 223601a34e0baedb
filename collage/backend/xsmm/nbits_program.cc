#include "collage/backend/xsmm/nbits_program.h"

#include <algorithm>
#include <bit>

namespace collage::xsmm {
namespace {

constexpr int64_t kWordBits = 32;

NBitsProduct ProductOf(const Chain& chain) {
  std::vector<TensorType> types;
  for (const size_t input : chain.base->inputs) types.push_back(chain.TypeOf(input));
  return *ReadNBitsProduct(types, chain.base->attributes);  // its type rule has read them
}

const Tensor& Constant(const Chain& chain, size_t input) { return *chain.sequence->values[chain.base->inputs[input]].constant; }

}  // namespace

Status NBitsProgram::Check(const Chain& chain) {
  for (const size_t input : {1, 2, 3}) {
    if (!chain.IsConstant(chain.base->inputs[input])) return Fail("libxsmm: weights of few bits must be constant");
  }
  const NBitsProduct product = ProductOf(chain);
  if (product.bits < 4) return Fail("libxsmm: weights of 4 and 8 bits are supported");
  if (product.block * product.bits % kWordBits != 0) return Fail("libxsmm: blocks of weights must fill words of 32 bits");
  return {};
}

Result<std::shared_ptr<const Program>> NBitsProgram::Make(const Chain& chain, int64_t tile_rows, int64_t lanes, int threads) {
  COLLAGE_TRY_STATUS(Check(chain));
  return std::make_shared<NBitsProgram>(chain, tile_rows, lanes, threads);
}

NBitsProgram::NBitsProgram(const Chain& chain, int64_t tile_rows, int64_t lanes, int threads)
    : PanelProgram(chain, tile_rows, lanes, threads), product_(ProductOf(chain)), loop_(NBitsLoopFor(lanes, product_.bits)) {
  Pack(chain, lanes);
}

void NBitsProgram::Pack(const Chain& chain, int64_t lanes) {
  const auto weights = Constant(chain, 1).Values<uint8_t>();
  const auto scales = Constant(chain, 2).Values<float>();
  const auto zeros = Constant(chain, 3).Values<uint8_t>();
  const int64_t middle = product_.DefaultZero();
  bool has_offsets = false;
  for (int64_t column = 0; column < product_.columns; ++column) {
    for (int64_t block = 0; block < product_.blocks; ++block) has_offsets = has_offsets || product_.Zero(zeros, column, block) != middle;
  }
  const int64_t in_word = kWordBits / product_.bits;
  const int64_t rows_of_block = (has_offsets ? 2 : 1) + product_.block / in_word;
  // What is allocated is zero, as the columns behind the last and the depths behind the last have to be.
  auto* packed = reinterpret_cast<uint32_t*>(operands_.Allocate(product_.blocks * rows_of_block * RoundedUp(product_.columns, lanes)));
  std::vector<uint8_t> values(static_cast<size_t>(product_.depth));
  for (Panel& panel : panels_) {
    const int64_t width = RoundedUp(panel.count, lanes);
    panel.weights = packed;
    for (int64_t c = 0; c < panel.count; ++c) {
      const int64_t column = panel.first + c;
      product_.Unpack(weights, column, 0, product_.depth, values.data());
      for (int64_t block = 0; block < product_.blocks; ++block) {
        uint32_t* of_block = packed + block * rows_of_block * width + c;
        const float scale = scales[static_cast<size_t>(column * product_.blocks + block)];
        *of_block = std::bit_cast<uint32_t>(scale);
        if (has_offsets) {
          of_block += width;
          *of_block = std::bit_cast<uint32_t>(scale * static_cast<float>(middle - product_.Zero(zeros, column, block)));
        }
        of_block += width;
        const int64_t first = block * product_.block;
        for (int64_t d = 0; d < std::min(product_.block, product_.depth - first); ++d) {
          // Less the middle, as signed numbers of so many bits.
          const auto value = static_cast<uint32_t>(values[static_cast<size_t>(first + d)]) ^ static_cast<uint32_t>(middle);
          of_block[d / in_word * width] |= value << (d % in_word * product_.bits);
        }
      }
    }
    packed += product_.blocks * rows_of_block * width;
  }
  if (has_offsets) prepared_ = WholeLines(product_.rows * product_.blocks);
}

void NBitsProgram::Prepare(const float* data, float* prepared) const {
  for (int64_t row = 0; row < rows_; ++row) SumBlocks(data + row * depth_, depth_, product_.block, prepared + row * product_.blocks);
}

void NBitsProgram::Multiply(const Tile& tile) const {
  const float* sums = prepared_ == 0 ? nullptr : tile.prepared + tile.first_row * product_.blocks;
  loop_({tile.data, depth_, tile.rows, depth_, product_.block, static_cast<const uint32_t*>(tile.panel->weights), sums, product_.blocks,
         tile.panel->count, tile.result, tile.result_row});
}

}  // namespace collage::xsmm
