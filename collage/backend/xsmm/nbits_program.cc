#include "collage/backend/xsmm/nbits_program.h"

#include <algorithm>
#include <bit>

namespace collage::xsmm {
namespace {

constexpr int64_t kWordBits = 32;

int64_t RoundedUp(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

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
  auto program = std::make_shared<NBitsProgram>();
  const NBitsProduct product = program->product_ = ProductOf(chain);
  for (const auto& [first, count] : CutEvenly(product.rows, tile_rows, 1)) program->rows_.push_back({first, count});
  // Narrower where there would not be one panel for each thread.
  const int64_t vectors = RoundedUp(product.columns, lanes) / lanes;
  const int64_t most = lanes * std::clamp<int64_t>(vectors / std::max(threads, 1), 1, kNBitsVectors);
  for (const auto& [first, count] : CutEvenly(product.columns, most, lanes)) program->panels_.push_back({first, count, nullptr});
  program->Pack(chain, lanes);
  program->data_ = program->operands_.Of(chain, chain.Data(), Layout());
  program->tail_ = BoundTail(chain, chain.tail, Layout(), program->operands_);
  program->loop_ = NBitsLoopFor(lanes, product.bits);
  const double operations = 2.0 * static_cast<double>(product.rows * product.columns) * static_cast<double>(product.depth);
  program->pieces_ = PiecesWorth(operations, program->panels_.size(), threads);
  program->slot_ = WholeLines(std::min(product.rows, tile_rows) * most);
  return program;
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
  if (has_offsets) sums_ = WholeLines(product_.rows * product_.blocks);
}

void NBitsProgram::Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const {
  const float* data = data_.In(inputs);
  float* sums = sums_ == 0 ? nullptr : scratch + tail_.slots() * slot_;
  for (int64_t row = 0; sums != nullptr && row < product_.rows; ++row)
    SumBlocks(data + row * product_.depth, product_.depth, product_.block, sums + row * product_.blocks);
  const size_t end = panels_.size() * (piece + 1) / pieces_;
  for (size_t p = panels_.size() * piece / pieces_; p < end; ++p) {
    const Panel& panel = panels_[p];
    for (const Rows& rows : rows_) {
      const TailTile tile{rows.count, panel.count, rows.first * product_.columns + panel.first, product_.columns, panel.first};
      tail_.Prefetch(tile, inputs);
      loop_({data + rows.first * product_.depth, product_.depth, rows.count, product_.depth, product_.block, panel.weights,
             sums == nullptr ? nullptr : sums + rows.first * product_.blocks, product_.blocks, panel.count,
             tail_.IsEmpty() ? result + tile.result : scratch, tail_.IsEmpty() ? product_.columns : panel.count});
      if (!tail_.IsEmpty()) tail_.Run(tile, inputs, result, scratch, slot_);
    }
  }
}

}  // namespace collage::xsmm
