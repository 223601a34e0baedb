#include "collage/op/nbits_product.h"

#include "op_testing.h"

namespace collage {
namespace {

constexpr const char* kOp = "nn.matmul_nbits";

Attributes Of(int64_t bits, int64_t block) { return {{"bits", bits}, {"block_size", block}}; }

Tensor Bytes(Shape shape, const std::vector<uint8_t>& values) { return Make<uint8_t>(std::move(shape), DType::kUInt8, values); }

TEST(NBitsProductTest, HalvesOfBytesLowOnesFirst) {
  // One column of three weights in blocks of two: 1 2, 3 (and 4 that fills up); scales 10 and 100; zero points 1 and 2.
  const Tensor result =
      Apply(kOp, {Floats({2, 3}, {1, 2, 3, 0, 0, 1}), Bytes({1, 2, 1}, {0x21, 0x43}), Floats({1, 2}, {10, 100}), Bytes({1, 1}, {0x21})},
            Of(4, 2));
  EXPECT_EQ(result.ToDouble(), (std::vector<double>{1 * 0 + 2 * 10 + 3 * 100, 100}));
}

TEST(NBitsProductTest, QuartersAndWholeBytes) {
  for (const int64_t bits : {2, 8}) {
    // Weights 3 and 1 of one column, less the default zero point.
    const Tensor weights = bits == 2 ? Bytes({1, 1, 1}, {0x07}) : Bytes({1, 1, 4}, {3, 1, 0, 0});
    const NBitsProduct product{1, 1, 2, bits, 4, 1};
    const Tensor result = Apply(kOp, {Floats({2}, {1, 10}), weights, Floats({1, 1}, {0.5}), product.DefaultZeros()}, Of(bits, 4));
    const double zero = bits == 2 ? 2 : 128;
    EXPECT_EQ(result.ToDouble(), std::vector<double>{0.5 * ((3 - zero) + 10 * (1 - zero))});
  }
}

TEST(NBitsProductTest, DeepProductsOfManyColumnsByTheDefinition) {
  const Tensor data = Random(T({3, 600}));
  const Tensor scales = Random(T({37, 38}), 2);
  const Tensor weights = Random(T({37, 38, 8}, DType::kUInt8), 3);
  const Tensor zeros = Random(T({37, 19}, DType::kUInt8), 4);
  const Tensor result = Apply(kOp, {data, weights, scales, zeros}, Of(4, 16));
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t column = 0; column < 37; ++column) {
      double sum = 0;
      for (int64_t d = 0; d < 600; ++d) {
        const int64_t block = d / 16;
        const uint8_t byte = weights.Data<uint8_t>()[(column * 38 + block) * 8 + d % 16 / 2];
        const uint8_t zero_byte = zeros.Data<uint8_t>()[column * 19 + block / 2];
        const int weight = d % 2 == 0 ? byte & 15 : byte >> 4;
        const int zero = block % 2 == 0 ? zero_byte & 15 : zero_byte >> 4;
        sum += static_cast<double>(data.Data<float>()[row * 600 + d]) * (weight - zero) *
               static_cast<double>(scales.Data<float>()[column * 38 + block]);
      }
      EXPECT_NEAR(result.Data<float>()[row * 37 + column], sum, 1e-4);
    }
  }
}

TEST(NBitsProductTest, TypesFitEachOther) {
  const Type data = T({2, 40});
  const Type weights = T({5, 3, 8}, DType::kUInt8);
  const Type scales = T({5, 3});
  const Type zeros = T({5, 2}, DType::kUInt8);
  const auto infer = [](const std::vector<Type>& arguments, int64_t bits, int64_t block) { return Infer(kOp, arguments, Of(bits, block)); };
  EXPECT_EQ(infer({data, weights, scales, zeros}, 4, 16), Infer("nn.relu", {T({2, 5})}));
  EXPECT_THAT(infer({data, weights, scales, zeros}, 3, 16), testing::HasSubstr("bits is 3, expected 2, 4 or 8"));
  EXPECT_THAT(infer({data, weights, scales, zeros}, 4, 3), testing::HasSubstr("fill whole bytes"));
  EXPECT_THAT(infer({data, weights, scales, zeros}, 4, 32), testing::HasSubstr("weights"));
  EXPECT_THAT(infer({data, weights, T({5, 3}, DType::kFloat16), zeros}, 4, 16), testing::HasSubstr("scales"));
  EXPECT_THAT(infer({data, weights, scales, T({5, 2}, DType::kInt8)}, 4, 16), testing::HasSubstr("zero_points are int8"));
  EXPECT_THAT(infer({T({}), weights, scales, zeros}, 4, 16), testing::HasSubstr("data"));
}

}  // namespace
}  // namespace collage
