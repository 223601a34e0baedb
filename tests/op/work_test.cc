#include "collage/op/table.h"
#include "op_testing.h"

namespace collage {
namespace {

Work WorkOf(const std::string& op, const std::vector<Type>& arguments, const Attributes& attributes = {}) {
  const OpDef* def = Operators().Find(op);
  const Result<Type> result = def->infer_type(arguments, attributes);
  EXPECT_TRUE(result.has_value()) << result.error().message;
  return result ? def->work(arguments, *result, attributes) : Work{-1, -1};
}

void ExpectWork(const Work& work, double flops, double bytes) {
  EXPECT_EQ(work.flops, flops);
  EXPECT_EQ(work.bytes, bytes);
}

TEST(WorkTest, ConvolutionsMultiplyAndAddOnceATap) {
  ExpectWork(WorkOf("nn.conv2d", {T({1, 4, 8, 8}), T({6, 4, 3, 3})}), 2.0 * 6 * 36 * 4 * 9, 4.0 * (4 * 64 + 6 * 4 * 9 + 6 * 36));
  ExpectWork(WorkOf("nn.conv2d", {T({1, 4, 8, 8}), T({4, 1, 3, 3})}, {{"groups", 4}, {"padding", 1}}), 2.0 * 4 * 22 * 22,
             4.0 * (4 * 64 + 4 * 9 + 4 * 64));
  ExpectWork(WorkOf("nn.conv2d_transpose", {T({1, 4, 8, 8}), T({4, 6, 2, 2})}, {{"strides", 2}}), 2.0 * 4 * 64 * 6 * 4,
             4.0 * (4 * 64 + 4 * 6 * 4 + 6 * 256));
}

TEST(WorkTest, PaddingIsNoWork) {
  // Taps at 0, 2, 4 from -1: of five positions in steps of two on eight elements, 4, 4 and 3 of them meet an element.
  ExpectWork(WorkOf("nn.conv2d", {T({1, 1, 8, 1}), T({1, 1, 3, 1})},
                    {{"padding", Ints{1, 0, 5, 0}}, {"strides", Ints{2, 1}}, {"dilation", Ints{2, 1}}}),
             2.0 * (4 + 4 + 3), 4.0 * (8 + 3 + 5));
  // All taps lie in the padding.
  ExpectWork(WorkOf("nn.conv2d", {T({1, 1, 1, 1}), T({1, 1, 1, 1})}, {{"padding", Ints{0, 1, 0, 1}}}), 2.0, 4.0 * (1 + 1 + 3));
  ExpectWork(WorkOf("nn.conv2d_transpose", {T({1, 1, 4, 4}), T({1, 1, 3, 3})}, {{"padding", 1}}), 2.0 * 10 * 10, 4.0 * (16 + 9 + 16));
  ExpectWork(WorkOf("nn.conv3d", {T({1, 2, 4, 4, 4}), T({3, 2, 3, 3, 3})}, {{"padding", 1}}), 2.0 * 3 * 2 * 1000, 4.0 * (128 + 162 + 192));
}

TEST(WorkTest, BlocksAddWhatLiesInTheImage) {
  // Two dimensions with three blocks of three at -1, 0 and 1 of an image of three: 2, 3 and 2 elements of each lie in it.
  ExpectWork(WorkOf("nn.col2im", {T({2, 18, 9})}, {{"output_size", Ints{3, 3}}, {"kernel_size", 3}, {"padding", 1}}), 4.0 * 7 * 7,
             4.0 * (2 * 18 * 9 + 2 * 2 * 9));
}

TEST(WorkTest, ProductsMultiplyAndAddOnceATerm) {
  ExpectWork(WorkOf("nn.dense", {T({3, 5}), T({7, 5})}), 2.0 * 3 * 5 * 7, 4.0 * (15 + 35 + 21));
  ExpectWork(WorkOf("nn.matmul", {T({4, 3, 5}), T({5, 7})}), 2.0 * 4 * 3 * 5 * 7, 4.0 * (60 + 35 + 84));
  ExpectWork(WorkOf("nn.matmul_nbits", {T({3, 40}), T({7, 3, 8}, DType::kUInt8), T({7, 3}), T({7, 2}, DType::kUInt8)},
                    {{"bits", 4}, {"block_size", 16}}),
             2.0 * 3 * 40 * 7, 4.0 * (120 + 21 + 21) + 7 * 3 * 8 + 7 * 2);
  ExpectWork(WorkOf("nn.batch_matmul", {T({4, 3, 5}), T({4, 7, 5})}), 2.0 * 4 * 3 * 5 * 7, 4.0 * (60 + 140 + 84));
}

TEST(WorkTest, OthersCountWhatTheyTouch) {
  ExpectWork(WorkOf("nn.max_pool2d", {T({1, 2, 4, 4})}, {{"pool_size", 2}, {"strides", 2}}), 8 * 4, 4.0 * (32 + 8));
  ExpectWork(WorkOf("add", {T({2, 3}), T({3})}), 6, 4.0 * (6 + 3 + 6));
  ExpectWork(WorkOf("less", {T({4}), T({4})}), 4, 4.0 * 8 + 4);
  ExpectWork(WorkOf("sum", {T({2, 3})}, {{"axis", 1}}), 6, 4.0 * (6 + 2));
  ExpectWork(WorkOf("concatenate", {TupleType{{T({2}), T({3})}}}), 0, 4.0 * (5 + 5));
  ExpectWork(WorkOf("strided_slice", {T({100})}, {{"begin", 0}, {"end", 10}}), 0, 4.0 * (10 + 10));
  ExpectWork(WorkOf("take", {T({100, 4}), T({3}, DType::kInt64)}, {{"axis", 0}}), 0, 8.0 * 3 + 4.0 * (12 + 12));
  ExpectWork(WorkOf("zeros", {}, {{"shape", Ints{5}}}), 0, 20);
  for (const char* view : {"copy", "nn.batch_flatten", "squeeze"}) ExpectWork(WorkOf(view, {T({2, 3})}), 0, 0);
}

}  // namespace
}  // namespace collage
