#include "op_testing.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(QuantisationTest, InfersTypesAndRefuses) {
  const Type scale = T({});
  EXPECT_EQ(Infer("qnn.quantize", {T({2, 3}), scale, T({}, DType::kInt8)}), "Tensor[(2, 3), int8]");
  EXPECT_EQ(Infer("qnn.dequantize", {T({2, 3}, DType::kUInt8), T({3}), T({3}, DType::kUInt8)}), "Tensor[(2, 3), float32]");
  EXPECT_THAT(Infer("qnn.quantize", {T({2, 3}), scale, T({})}), HasSubstr("output_zero_point has dtype float32, expected an integer type"));
  EXPECT_THAT(Infer("qnn.quantize", {T({2, 3}), T({2}), T({2}, DType::kInt8)}), HasSubstr("output_scale has shape (2,), expected (3,)"));
  EXPECT_THAT(Infer("qnn.quantize", {T({2, 3}), T({3}), T({}, DType::kInt8)}), HasSubstr("output_zero_point has shape (), expected (3,)"));
  EXPECT_THAT(Infer("qnn.dequantize", {T({2}, DType::kInt8), scale, T({}, DType::kUInt8)}), HasSubstr("input_zero_point has dtype uint8"));
}

TEST(QuantisationTest, RoundsHalvesToEvenAndSaturates) {
  const Tensor data = Floats({6}, {1, 3, -1, 1000, -1000, 0});
  const Tensor zero = Make<int8_t>({}, DType::kInt8, {10});
  EXPECT_THAT(Apply("qnn.quantize", {data, Floats({}, {2}), zero}).ToInt64(), ElementsAre(10, 12, 10, 127, -128, 10));
}

TEST(QuantisationTest, ScalesLieAlongAnAxis) {
  const Tensor data = Make<uint8_t>({2, 2}, DType::kUInt8, {10, 20, 30, 40});
  const Tensor zero = Make<uint8_t>({2}, DType::kUInt8, {0, 20});
  EXPECT_THAT(Apply("qnn.dequantize", {data, Floats({2}, {1, 0.5}), zero}, {{"axis", 0}}).ToDouble(), ElementsAre(10, 20, 5, 10));
  EXPECT_THAT(Apply("qnn.dequantize", {data, Floats({2}, {1, 0.5}), zero}).ToDouble(), ElementsAre(10, 0, 30, 10));
}

TEST(IntegerProductTest, WrapsAround) {
  const Tensor a = Make<int8_t>({1, 2}, DType::kInt8, {100, 2});
  const Tensor b = Make<int8_t>({2, 1}, DType::kInt8, {3, -5});
  EXPECT_THAT(Apply("nn.matmul", {a, b}).ToInt64(), ElementsAre(290 - 256));
  const Tensor data = Make<int32_t>({1, 1, 1, 3}, DType::kInt32, {1, 2, 3});
  const Tensor weight = Make<int32_t>({1, 1, 1, 2}, DType::kInt32, {10, -1});
  EXPECT_THAT(Apply("nn.conv2d", {data, weight}).ToInt64(), ElementsAre(8, 17));
}

TEST(SixteenBitFloatsTest, AreComputedInFloat32AndRoundedOnce) {
  // In float16 alone 2048 + 1 is 2048, and the mean of three such elements a multiple of 2.
  const Tensor data = Apply("cast", {Floats({3}, {2048, 2050, 2046})}, {{"dtype", "float16"}});
  const Tensor mean = Apply("mean", {data});
  EXPECT_EQ(mean.dtype(), DType::kFloat16);
  EXPECT_THAT(mean.ToDouble(), ElementsAre(2048));
  const Tensor sum = Apply("add", {data, Apply("cast", {Floats({}, {1})}, {{"dtype", "float16"}})});
  EXPECT_THAT(sum.ToDouble(), ElementsAre(2048, 2052, 2047));
  EXPECT_THAT(Apply("greater", {data, Apply("cast", {Floats({}, {2047})}, {{"dtype", "float16"}})}).ToInt64(), ElementsAre(1, 1, 0));
}

}  // namespace
}  // namespace collage
