#include <gtest/gtest.h>

#include "collage/tensor/agreement.h"
#include "tests/backend/native/native_harness.h"

namespace collage {
namespace {

using namespace collage::testing;  // NOLINT(google-build-using-namespace)
using Values = std::vector<int64_t>;

TEST(NativeMovement, ViewsRegroupDimensions) {
  const Expr x = Parameter("x", {4, 6, 35});
  for (const Values& shape : {Values{24, 35}, Values{840}, Values{2, 2, 3, 2, 5, 7}, Values{8, 105}, Values{7, 120}}) {
    const Expr y = CallNamed("reshape", {CallNamed("exp", {x})}, {{"newshape", shape}});
    ExpectMatchesReference({x}, CallNamed("add", {y, RandomConstant({shape.back()}, 3)}));
  }
  const Expr z = Parameter("z", {1, 6, 1, 5});
  ExpectMatchesReference(
      {z}, CallNamed("expand_dims", {CallNamed("squeeze", {z}, {{"axis", Values{0, 2}}})}, {{"axis", 1}, {"num_newaxis", 2}}));
  ExpectMatchesReference({z}, CallNamed("nn.batch_flatten", {z}));
}

TEST(NativeMovement, HeadsOfAttention) {
  const Expr x = Parameter("x", {1, 50, 96});
  const Expr biased = CallNamed("add", {x, RandomConstant({96}, 3)});
  const Expr split = CallNamed("reshape", {biased}, {{"newshape", Values{1, 50, 4, 24}}});
  for (const Values& axes : {Values{0, 2, 1, 3}, Values{0, 2, 3, 1}})
    ExpectMatchesReference({x}, CallNamed("transpose", {split}, {{"axes", axes}}));
  const Expr y = Parameter("y", {1, 4, 50, 24});
  const Expr merged = CallNamed("reshape", {CallNamed("transpose", {y}, {{"axes", Values{0, 2, 1, 3}}})}, {{"newshape", Values{50, 96}}});
  ExpectMatchesReference({y}, CallNamed("tanh", {merged}));
}

TEST(NativeMovement, TransposesOfEveryOrder) {
  const Expr x = Parameter("x", {3, 5, 18});
  for (const Values& axes : {Values{0, 1, 2}, Values{0, 2, 1}, Values{1, 0, 2}, Values{1, 2, 0}, Values{2, 0, 1}, Values{2, 1, 0}})
    ExpectMatchesReference({x}, CallNamed("transpose", {CallNamed("negative", {x})}, {{"axes", axes}}));
  ExpectMatchesReference({x}, CallNamed("transpose", {x}));
}

TEST(NativeMovement, ConcatenationAlongEveryAxis) {
  for (int axis = 0; axis < 3; ++axis) {
    Shape first = {2, 3, 17};
    Shape second = first;
    second[static_cast<size_t>(axis)] = 5;
    const Expr a = Parameter("a", first);
    const Expr b = Parameter("b", second);
    const Expr joined = CallNamed("concatenate", {MakeTuple({a, b, a})}, {{"axis", axis}});
    ExpectMatchesReference({a, b}, joined);
    ExpectMatchesReference({a, b}, CallNamed("nn.relu", {CallNamed("add", {joined, ScalarConstant(0.5)})}));
    ExpectMatchesReference({a, b}, CallNamed("transpose", {joined}));
  }
  const Expr a = Parameter("a", {3, 40});
  ExpectMatchesReference({a}, CallNamed("stack", {MakeTuple({a, CallNamed("exp", {a})})}, {{"axis", 1}}));
  ExpectMatchesReference({a}, CallNamed("stack", {MakeTuple({a, CallNamed("exp", {a})})}, {{"axis", -1}}));
}

TEST(NativeMovement, ConcatenationOfImagesThenScaleAndShift) {
  const Expr a = Parameter("a", {1, 24, 28, 28});
  const Expr b = Parameter("b", {1, 40, 28, 28});
  const Expr joined = CallNamed("concatenate", {MakeTuple({a, b})}, {{"axis", 1}});
  const Expr scaled = CallNamed("multiply", {joined, RandomConstant({64, 1, 1}, 5)});
  ExpectMatchesReference({a, b}, CallNamed("nn.relu", {CallNamed("nn.bias_add", {scaled, RandomConstant({64}, 6)})}));
}

TEST(NativeMovement, ShuffleOfChannels) {
  const Expr a = Parameter("a", {1, 8, 7, 7});
  const Expr b = Parameter("b", {1, 8, 7, 7});
  Expr value = CallNamed("concatenate", {MakeTuple({a, b})}, {{"axis", 1}});
  value = CallNamed("reshape", {value}, {{"newshape", Values{1, 2, 8, 7, 7}}});
  value = CallNamed("transpose", {value}, {{"axes", Values{0, 2, 1, 3, 4}}});
  value = CallNamed("reshape", {value}, {{"newshape", Values{1, 16, 7, 7}}});
  ExpectMatchesReference({a, b}, value);
  ExpectMatchesReference({a, b}, CallNamed("split", {value}, {{"indices_or_sections", 2}, {"axis", 1}}));
}

TEST(NativeMovement, SplitSlicePadAndTile) {
  const Expr x = Parameter("x", {4, 10, 21});
  ExpectMatchesReference({x}, CallNamed("split", {x}, {{"indices_or_sections", Values{3, 4}}, {"axis", 1}}));
  ExpectMatchesReference(
      {x}, CallNamed("strided_slice", {x}, {{"begin", Values{1, 2, 3}}, {"end", Values{4, 9, 20}}, {"strides", Values{1, 2, 3}}}));
  ExpectMatchesReference(
      {x}, CallNamed("strided_slice", {x}, {{"begin", Values{-1}}, {"end", Values{-22}}, {"strides", Values{-1}}, {"axes", Values{2}}}));
  ExpectMatchesReference({x}, CallNamed("tile", {x}, {{"reps", Values{2, 1, 3}}}));
  ExpectMatchesReference({x}, CallNamed("tile", {x}, {{"reps", Values{2, 2, 1, 1}}}));
  ExpectMatchesReference({x}, CallNamed("broadcast_to", {CallNamed("strided_slice", {x}, {{"begin", Values{0, 0}}, {"end", Values{4, 1}}})},
                                        {{"shape", Values{4, 6, 21}}}));
  const AttributeValue width(AttributeValue::List{Values{1, 0}, Values{2, 3}, Values{4, 5}});
  for (const char* mode : {"constant", "edge", "reflect"}) {
    const Expr padded = CallNamed("nn.pad", {x, ScalarConstant(0.25)}, {{"pad_width", width}, {"pad_mode", mode}});
    ExpectMatchesReference({x}, padded);
    ExpectMatchesReference({x}, CallNamed("exp", {padded}));
  }
}

TEST(NativeMovement, GatheringByIndices) {
  const Expr data = Parameter("data", {9, 5, 20});
  const Expr indices = Parameter("indices", {3, 2}, DType::kInt64);
  for (const char* mode : {"clip", "wrap"}) {
    for (int axis : {0, 1, 2, -1})
      ExpectMatchesReference({data, indices}, CallNamed("take", {data, indices}, {{"axis", axis}, {"mode", mode}}));
    ExpectMatchesReference({data, indices}, CallNamed("take", {data, indices}, {{"mode", mode}}));
  }
  const Expr coordinates = Parameter("coordinates", {2, 4}, DType::kInt64);
  ExpectMatchesReference({data, coordinates}, CallNamed("gather_nd", {data, coordinates}));
  const Expr shifted = CallNamed("subtract", {coordinates, ScalarConstant(3, DType::kInt64)});
  ExpectMatchesReference({data, coordinates}, CallNamed("gather_nd", {data, shifted}));
}

TEST(NativeMovement, BlocksThatAddUp) {
  const auto expect_sums = [](const Shape& shape, const Attributes& geometry) {
    const Expr integers = Parameter("x", shape, DType::kInt32);
    ExpectMatchesReference({integers}, CallNamed("nn.col2im", {integers}, geometry));
    const Expr x = Parameter("x", shape);
    const Expr sums = CallNamed("nn.col2im", {CallNamed("negative", {x})}, geometry);
    ExpectMatchesReference({x}, CallNamed("nn.relu", {CallNamed("add", {sums, ScalarConstant(1)})}), {.tolerance = kTolerance});
  };
  using Ints = std::vector<int64_t>;
  for (const int64_t extent : {4, 40}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (int64_t more = 0; more < stride; ++more) {
        const int64_t image = (extent - 1) * stride + 4 - 2 + more;
        expect_sums({2, 32, extent * extent},
                    {{"output_size", Ints{image, image}}, {"kernel_size", 4}, {"strides", stride}, {"padding", 1}});
      }
    }
  }
  expect_sums({2, 15, 400}, {{"output_size", 803}, {"kernel_size", 5}, {"strides", 2}});
  expect_sums({1, 256, 16}, {{"output_size", Ints{56, 56}}, {"kernel_size", 16}, {"strides", 16}, {"dilation", 1}, {"padding", 4}});
  expect_sums(
      {1, 18, 15},
      {{"output_size", Ints{13, 8}}, {"kernel_size", 3}, {"strides", Ints{6, 3}}, {"dilation", Ints{4, 2}}, {"padding", Ints{5, 4, 3, 6}}});
  expect_sums({1, 16, 18}, {{"output_size", Ints{4, 4, 4}}, {"kernel_size", 2}, {"strides", Ints{1, 2, 1}}});
  expect_sums({1, 6, 7},
              {{"output_size", Ints{14, 1}}, {"kernel_size", Ints{3, 1}}, {"strides", Ints{2, 1}}, {"padding", Ints{1, 0, 0, 0}}});
}

TEST(NativeMovement, BlocksAndScales) {
  const Expr x = Parameter("x", {2, 12, 6, 10});
  for (const char* mode : {"DCR", "CRD"})
    ExpectMatchesReference({x}, CallNamed("nn.depth_to_space", {x}, {{"block_size", 2}, {"mode", mode}}));
  ExpectMatchesReference({x}, CallNamed("nn.space_to_depth", {x}, {{"block_size", 2}}));
  for (double scale : {2.0, 3.0, 1.5}) {
    ExpectMatchesReference({x}, CallNamed("nn.upsampling", {x}, {{"scale_h", scale}, {"scale_w", scale}}));
    for (bool align : {false, true}) {
      ExpectMatchesReference(
          {x}, CallNamed("nn.upsampling", {x}, {{"scale_h", scale}, {"scale_w", 2.0}, {"method", "bilinear"}, {"align_corners", align}}),
          {.tolerance = kTolerance});
    }
  }
}

TEST(NativeMovement, FillsWithoutInputs) {
  const Expr zeros = CallNamed("zeros", {}, {{"shape", Values{3, 7}}, {"dtype", "int64"}});
  const Expr full = CallNamed("full", {ScalarConstant(2.5)}, {{"shape", Values{3, 7}}});
  ExpectMatchesReference({}, MakeTuple({zeros, full}));
}

}  // namespace
}  // namespace collage
