#include <fmt/format.h>

#include <random>

#include "collage/form/rules.h"
#include "tests/form/form_testing.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

std::string Transposed(const std::string& data, const std::string& weight, const std::string& attributes) {
  return fmt::format("fn (%x: Tensor[({}), float32]) {{ nn.conv2d_transpose(%x, meta[relay.Constant][0] /*Tensor[({}), float32]*/, {}) }}",
                     data, weight, attributes);
}

TEST(TransposedConvolutionForm, IsAConvolutionOfFourTimesTheChannelsForAStrideOfTwo) {
  const FormedGraph formed =
      FormsIn(FunctionOf(Transposed("1, 3, 4, 4", "3, 5, 4, 4", "strides=[2, 2], padding=[1, 1, 1, 1]")), {TransposedConvolutionForm()});
  ASSERT_EQ(formed.forms.size(), 1u);
  EXPECT_EQ(PrintExpr(WithForm(formed, 0)).text,
            "fn (%x: Tensor[(1, 3, 4, 4), float32]) -> Tensor[(1, 5, 8, 8), float32] {\n"
            "  %0 = nn.conv2d(%x, meta[relay.Constant][0] /*Tensor[(20, 3, 2, 2), float32]*/, padding=[1, 1, 1, 1]);\n"
            "  %1 = nn.depth_to_space(%0, block_size=2);\n"
            "  strided_slice(%1, begin=[1, 1], end=[9, 9], axes=[2, 3])\n"
            "}\n");
}

TEST(TransposedConvolutionForm, ComputesTheSameForAllGeometries) {
  std::mt19937 random(1);
  const auto pick = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  size_t tried = 0;
  while (tried < Rounds(200)) {
    const int stride = pick(2, 4);
    const std::array<int, 2> data = {pick(1, 6), pick(1, 6)};
    const std::array<int, 2> kernel = {pick(1, 7), pick(1, 7)};
    std::array<int, 4> pads{};
    for (int& pad : pads) pad = pick(0, 4);
    const std::array<int, 2> more = {pick(0, stride - 1), pick(0, stride - 1)};
    const auto extent = [&](size_t d) { return (data[d] - 1) * stride + kernel[d] - pads[d] - pads[d + 2] + more[d]; };
    if (extent(0) < 1 || extent(1) < 1) continue;
    ++tried;
    const int inputs = pick(1, 4);
    ASSERT_NO_FATAL_FAILURE(
        ExpectEqualForms(Transposed(fmt::format("{}, {}, {}, {}", pick(1, 2), inputs, data[0], data[1]),
                                    fmt::format("{}, {}, {}, {}", inputs, pick(1, 4), kernel[0], kernel[1]),
                                    fmt::format("strides=[{0}, {0}], padding=[{1}, {2}, {3}, {4}], output_padding=[{5}, {6}]", stride,
                                                pads[0], pads[1], pads[2], pads[3], more[0], more[1])),
                         TransposedConvolutionForm()));
  }
}

TEST(TransposedConvolutionForm, IsNoneWhereItsConditionFails) {
  const FormRule rule = TransposedConvolutionForm();
  ExpectNoForm(Transposed("1, 4, 4, 4", "4, 2, 4, 4", "strides=[2, 2], groups=2"), rule);
  ExpectNoForm(Transposed("1, 4, 4, 4", "4, 2, 4, 4", "strides=[2, 2], dilation=[2, 2]"), rule);
  ExpectNoForm(Transposed("1, 4, 4, 4", "4, 2, 4, 4", "strides=[2, 3]"), rule);
  ExpectNoForm(Transposed("1, 4, 4, 4", "4, 2, 4, 4", "strides=[1, 1]"), rule);
  ExpectNoForm("fn (%x: Tensor[(1, 4, 4, 4), float32], %w: Tensor[(4, 2, 4, 4), float32]) { nn.conv2d_transpose(%x, %w, strides=[2, 2]) }",
               rule);
}

std::string OfRank(size_t dimensions, const std::string& data, const std::string& weight, const std::string& attributes) {
  return fmt::format("fn (%x: Tensor[({}), float32]) {{ nn.conv{}d_transpose(%x, meta[relay.Constant][0] /*Tensor[({}), float32]*/, {}) }}",
                     data, dimensions, weight, attributes);
}

TEST(TransposedConvolutionProductForm, IsAProductWhoseBlocksAddUp) {
  const FormedGraph formed = FormsIn(FunctionOf(Transposed("1, 3, 4, 5", "3, 6, 4, 4", "strides=[2, 2], padding=[1, 1, 1, 1]")),
                                     {TransposedConvolutionProductForm()});
  ASSERT_EQ(formed.forms.size(), 1u);
  EXPECT_EQ(PrintExpr(WithForm(formed, 0)).text,
            "fn (%x: Tensor[(1, 3, 4, 5), float32]) -> Tensor[(1, 6, 8, 10), float32] {\n"
            "  %0 = reshape(%x, newshape=[3, 20]);\n"
            "  %1 = nn.matmul(meta[relay.Constant][0] /*Tensor[(96, 3), float32]*/, %0);\n"
            "  %2 = reshape(%1, newshape=[1, 96, 20]);\n"
            "  nn.col2im(%2, output_size=[8, 10], kernel_size=[4, 4], strides=[2, 2], dilation=[1, 1], padding=[1, 1, 1, 1])\n"
            "}\n");
}

TEST(TransposedConvolutionProductForm, ComputesTheSameForAllGeometries) {
  std::mt19937 random(2);
  const auto pick = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (size_t tried = 0; tried < Rounds(300);) {
    const auto dimensions = static_cast<size_t>(pick(2, 3));
    std::vector<int> data, kernel, strides, dilation, before, behind, more;
    bool is_possible = true;
    for (size_t d = 0; d < dimensions; ++d) {
      data.push_back(pick(1, 5));
      kernel.push_back(pick(1, 5));
      strides.push_back(pick(1, 4));
      dilation.push_back(pick(1, 3));
      before.push_back(pick(0, 3));
      behind.push_back(pick(0, 3));
      more.push_back(pick(0, std::max(strides[d], dilation[d]) - 1));
      is_possible = is_possible && (data[d] - 1) * strides[d] + (kernel[d] - 1) * dilation[d] + 1 + more[d] > before[d] + behind[d];
      is_possible = is_possible && more[d] - behind[d] < strides[d];
    }
    if (!is_possible) continue;
    ++tried;
    const int inputs = pick(1, 4);
    ASSERT_NO_FATAL_FAILURE(ExpectEqualForms(
        OfRank(dimensions, fmt::format("{}, {}, {}", pick(1, 2), inputs, fmt::join(data, ", ")),
               fmt::format("{}, {}, {}", inputs, pick(1, 4), fmt::join(kernel, ", ")),
               fmt::format("strides=[{}], dilation=[{}], padding=[{}, {}], output_padding=[{}]", fmt::join(strides, ", "),
                           fmt::join(dilation, ", "), fmt::join(before, ", "), fmt::join(behind, ", "), fmt::join(more, ", "))),
        TransposedConvolutionProductForm()));
  }
}

TEST(TransposedConvolutionProductForm, IsNoneWhereItsConditionFails) {
  const FormRule rule = TransposedConvolutionProductForm();
  ExpectNoForm(Transposed("1, 4, 4, 4", "4, 2, 4, 4", "strides=[2, 2], groups=2"), rule);
  ExpectNoForm(Transposed("1, 4, 4, 4", "4, 2, 3, 3", "strides=[1, 1], dilation=[2, 2], output_padding=[1, 0]"), rule);
  ExpectNoForm("fn (%x: Tensor[(1, 4, 4, 4), float32], %w: Tensor[(4, 2, 4, 4), float32]) { nn.conv2d_transpose(%x, %w, strides=[2, 2]) }",
               rule);
  ExpectNoForm(
      "fn (%x: Tensor[(1, 4, 4, 4), float16]) {"
      " nn.conv2d_transpose(%x, meta[relay.Constant][0] /*Tensor[(4, 2, 4, 4), float16]*/, strides=[2, 2]) }",
      rule);
}

}  // namespace
}  // namespace collage
