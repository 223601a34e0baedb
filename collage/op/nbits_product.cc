#include "collage/op/nbits_product.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "collage/op/families.h"
#include "collage/op/product_kernel.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

/// Element `at` of numbers of `bits` bits that follow one another from `bytes` on.
uint8_t Element(const uint8_t* bytes, int64_t bits, int64_t at) {
  const int64_t bit = at * bits;
  return static_cast<uint8_t>((bytes[bit / 8] >> (bit % 8)) & ((1 << bits) - 1));
}

Result<std::vector<TensorType>> Arguments(TypeArguments arguments) {
  std::vector<TensorType> types;
  for (const char* name : {"data", "weights", "scales", "zero_points"})
    types.push_back(COLLAGE_TRY(TensorArgument(arguments, types.size(), name)));
  return types;
}

Result<Type> NBitsType(TypeArguments arguments, const Attributes& attributes) {
  const std::vector<TensorType> types = COLLAGE_TRY(Arguments(arguments));
  const NBitsProduct product = COLLAGE_TRY(ReadNBitsProduct(types, attributes));
  TensorType result = types[0];
  result.shape.back() = product.columns;
  return Type(std::move(result));
}

Work NBitsWork(TypeArguments arguments, const Type& result, const Attributes& /*attributes*/) {
  const auto depth = static_cast<double>(arguments[0].AsTensor()->shape.back());
  Work work{2 * ElementCount(result) * depth, ByteCount(result)};
  for (const Type& argument : arguments) work.bytes += ByteCount(argument);
  return work;
}

template <class T>
void ComputeNBits(const NBitsProduct& product, std::span<const Tensor> inputs, Tensor& output) {
  const std::span<const uint8_t> weights = inputs[1].Values<uint8_t>();
  const std::span<const uint8_t> zeros = inputs[3].Values<uint8_t>();
  const T* scales = inputs[2].Data<T>();
  // The matrix as numbers would be many times as large; so each column is one when it is needed.
  BlockedProduct blocked{product.columns, product.rows, product.depth, {}, {}, {}};
  blocked.left = [&](int64_t column, int64_t first, int64_t count, double* out) {
    std::vector<uint8_t> values(static_cast<size_t>(count));
    product.Unpack(weights, column, first, count, values.data());
    for (int64_t d = first; const uint8_t value : values) {
      const int64_t block = d++ / product.block;
      const auto whole = static_cast<double>(value - product.Zero(zeros, column, block));
      *out++ = whole * static_cast<double>(scales[column * product.blocks + block]);
    }
  };
  const T* data = inputs[0].Data<T>();
  blocked.right = [&](int64_t d, int64_t first, int64_t count, double* out) {
    for (int64_t row = first; row < first + count; ++row) *out++ = static_cast<double>(data[row * product.depth + d]);
  };
  T* result = output.MutableData<T>();
  blocked.store = [&](int64_t column, int64_t first, int64_t count, const double* sums) {
    for (int64_t row = first; row < first + count; ++row) result[row * product.columns + column] = static_cast<T>(*sums++);
  };
  Compute(blocked);
}

void NBitsKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  const std::vector<TensorType> types = {inputs[0].type(), inputs[1].type(), inputs[2].type(), inputs[3].type()};
  const NBitsProduct product = *ReadNBitsProduct(types, attributes);
  VisitElementType(inputs[0].dtype(), [&](auto element) {
    if constexpr (std::is_floating_point_v<decltype(element)>) ComputeNBits<decltype(element)>(product, inputs, outputs[0]);
  });
}

}  // namespace

Tensor NBitsProduct::DefaultZeros() const {
  uint8_t byte = 0;
  for (int64_t bit = 0; bit < 8; bit += bits) byte |= static_cast<uint8_t>(DefaultZero() << bit);
  Tensor zeros(TensorType{{columns, ZeroBytes()}, DType::kUInt8});
  std::fill_n(zeros.MutableData<uint8_t>(), zeros.ElementCount(), byte);
  return zeros;
}

bool NBitsProduct::HasDefaultZeros(const Tensor& zero_points) const {
  const auto bytes = zero_points.Values<uint8_t>();
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t at = 0; at < blocks; ++at) {
      if (Zero(bytes, column, at) != DefaultZero()) return false;
    }
  }
  return true;
}

int64_t NBitsProduct::Zero(std::span<const uint8_t> zero_points, int64_t column, int64_t at) const {
  return Element(zero_points.data() + column * ZeroBytes(), bits, at);
}

void NBitsProduct::Unpack(std::span<const uint8_t> weights, int64_t column, int64_t first, int64_t count, uint8_t* values) const {
  const uint8_t* bytes = weights.data() + column * blocks * (block * bits / 8);
  for (int64_t d = 0; d < count; ++d) values[d] = Element(bytes, bits, first + d);
}

Result<NBitsProduct> ReadNBitsProduct(std::span<const TensorType> arguments, const Attributes& attributes) {
  const TensorType& data = arguments[0];
  COLLAGE_TRY_STATUS(ExpectFloat(data, "data"));
  COLLAGE_TRY_STATUS(ExpectRankAtLeast(data, "data", 1));
  NBitsProduct product;
  product.bits = IntAttribute(attributes, "bits", 4);
  product.block = IntAttribute(attributes, "block_size", 0);
  product.depth = data.shape.back();
  if (product.bits != 2 && product.bits != 4 && product.bits != 8)
    return Fail("bits is " + std::to_string(product.bits) + ", expected 2, 4 or 8");
  constexpr int64_t kMostOfBlock = int64_t{1} << 30;  // so that what is computed from it does not overflow
  if (product.block < 1 || product.block > kMostOfBlock || product.block * product.bits % 8 != 0)
    return Fail("block_size is " + std::to_string(product.block) + ", expected so many elements of " + std::to_string(product.bits) +
                " bits that they fill whole bytes");
  if (product.depth < 1) return Fail("data has shape " + ToString(data.shape) + ", expected a last dimension of one at least");
  product.blocks = (product.depth + product.block - 1) / product.block;
  COLLAGE_TRY_STATUS(ExpectRank(arguments[1], "weights", 3));
  product.columns = arguments[1].shape[0];
  COLLAGE_TRY_STATUS(ExpectShape(arguments[1], "weights", {product.columns, product.blocks, product.block * product.bits / 8}));
  COLLAGE_TRY_STATUS(ExpectShape(arguments[2], "scales", {product.columns, product.blocks}));
  COLLAGE_TRY_STATUS(ExpectSameDType(arguments[2], "scales", data, "data"));
  COLLAGE_TRY_STATUS(ExpectShape(arguments[3], "zero_points", {product.columns, product.ZeroBytes()}));
  for (const size_t packed : {1, 3}) {
    if (arguments[packed].dtype != DType::kUInt8)
      return Fail((packed == 1 ? "weights are " : "zero_points are ") + std::string(Name(arguments[packed].dtype)) + ", expected uint8");
  }
  product.rows = data.ElementCount() / product.depth;
  return product;
}

void AddNBitsProductOperators(OpTable& table) {
  Register(table,
           {.name = "nn.matmul_nbits",
            .summary = "Data [.., k] times the transpose of a matrix [n, k] of numbers (weight - zero point) * scale, as MatMulNBits of "
                       "com.microsoft. Weights are packed, [n, blocks, bytes of a block], the lowest bits of a byte first; scales are "
                       "[n, blocks], zero points packed, [n, bytes of a column].",
            .argument_names = {"data", "weights", "scales", "zero_points"},
            .attributes = {{"bits", "int", "of a weight: 2, 4 or 8, default 4"},
                           {"block_size", "int", "elements along k that share a scale and a zero point; they fill whole bytes", true}},
            .kind = OpKind::kOutElementwiseFusable,
            .infer_type = NBitsType,
            .work = NBitsWork,
            .reference = NBitsKernel});
}

}  // namespace collage
