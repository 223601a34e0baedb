#include "collage/backend/xsmm/panel_weights.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "collage/op/integer_weights.h"
#include "collage/op/nbits_product.h"

namespace collage::xsmm {
namespace {

constexpr int64_t kWordBits = 32;

const Tensor& ConstantOf(const Chain& chain, size_t value) { return *chain.sequence->values[value].constant; }

int64_t DepthOf(const Chain& chain) { return chain.ShapeOf(chain.Data()).back(); }

/// Reads a matrix of type T that is stored [columns][depth] where it is transposed, else [depth][columns].
template <class T, class ToBits>
auto MatrixReader(const Chain& chain, Tensor matrix, bool is_transposed, const ToBits& to_bits) {
  const int64_t depth = DepthOf(chain);
  const int64_t depth_stride = is_transposed ? 1 : chain.ResultShape().back();
  const int64_t column_stride = is_transposed ? depth : 1;
  return [=, matrix = std::move(matrix)](int64_t first, int64_t count, uint32_t* numbers) {
    const T* from = matrix.Data<T>() + first * column_stride;
    for (int64_t d = 0; d < depth; ++d) {
      for (int64_t c = 0; c < count; ++c) *numbers++ = to_bits(from[d * depth_stride + c * column_stride]);
    }
  };
}

NBitsProduct ProductOf(const Chain& chain) {
  std::vector<TensorType> types;
  for (const size_t input : chain.base->inputs) types.push_back(chain.TypeOf(input));
  return *ReadNBitsProduct(types, chain.base->attributes);  // its type rule has read them
}

}  // namespace

PanelWeights FloatWeights(const Chain& chain, bool is_transposed) {
  const auto to_bits = [](float number) { return std::bit_cast<uint32_t>(number); };
  return {kWordBits, DepthOf(chain), MatrixReader<float>(chain, ConstantOf(chain, chain.base->inputs[1]), is_transposed, to_bits)};
}

Result<PanelWeights> EightBitWeights(const Chain& chain) {
  constexpr int64_t kBits = 8;
  constexpr int64_t kInWord = kWordBits / kBits;
  const size_t axis = ChannelsOfWeights(*chain.base->op, chain.base->attributes);
  QuantisedWeights weights;
  if (chain.weights) {
    const auto scales = ConstantOf(chain, chain.weights->scales).Values<float>();
    weights = {ConstantOf(chain, chain.weights->integers), {scales.begin(), scales.end()}};
  } else {
    weights = COLLAGE_TRY(Round(ConstantOf(chain, chain.base->inputs[1]), axis));
  }
  const auto to_bits = [](int8_t number) { return static_cast<uint32_t>(static_cast<uint8_t>(number)); };
  const int64_t block = (DepthOf(chain) + kInWord - 1) / kInWord * kInWord;
  const auto scale = [scales = std::move(weights.scales)](int64_t column, int64_t) { return scales[static_cast<size_t>(column)]; };
  return PanelWeights{kBits, block, MatrixReader<int8_t>(chain, std::move(weights.values), axis == 0, to_bits), scale};
}

Status CheckNBitsWeights(const Chain& chain) {
  const NBitsProduct product = ProductOf(chain);
  for (const size_t input : {1, 2, 3}) {
    if (!chain.IsConstant(chain.base->inputs[input])) return Fail("libxsmm: weights of few bits must be constant");
  }
  if (product.bits < 4) return Fail("libxsmm: weights of 4 and 8 bits are supported");
  if (product.block * product.bits % kWordBits != 0) return Fail("libxsmm: blocks of weights must fill words of 32 bits");
  return {};
}

Result<PanelWeights> NBitsWeights(const Chain& chain) {
  COLLAGE_TRY_STATUS(CheckNBitsWeights(chain));
  const NBitsProduct product = ProductOf(chain);
  const Tensor weights = ConstantOf(chain, chain.base->inputs[1]);
  const Tensor scales = ConstantOf(chain, chain.base->inputs[2]);
  const Tensor zeros = ConstantOf(chain, chain.base->inputs[3]);
  const int64_t middle = product.DefaultZero();
  PanelWeights panel{product.bits, product.block, {}};
  panel.read = [=](int64_t first, int64_t count, uint32_t* numbers) {
    std::vector<uint8_t> columns(static_cast<size_t>(count * product.depth));
    for (int64_t c = 0; c < count; ++c)
      product.Unpack(weights.Values<uint8_t>(), first + c, 0, product.depth, columns.data() + c * product.depth);
    // Less the middle, as signed numbers of so many bits. In the order of what is written, which is four times as large.
    for (int64_t d = 0; d < product.depth; ++d) {
      for (int64_t c = 0; c < count; ++c)
        *numbers++ = static_cast<uint32_t>(columns[static_cast<size_t>(c * product.depth + d)]) ^ static_cast<uint32_t>(middle);
    }
  };
  panel.scale = [=](int64_t column, int64_t block) { return scales.Data<float>()[column * product.blocks + block]; };
  if (!product.HasDefaultZeros(zeros)) {
    panel.offset = [=](int64_t column, int64_t block) {
      const int64_t zero = product.Zero(zeros.Values<uint8_t>(), column, block);
      return scales.Data<float>()[column * product.blocks + block] * static_cast<float>(middle - zero);
    };
  }
  return panel;
}

}  // namespace collage::xsmm
