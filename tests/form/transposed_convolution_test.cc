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

}  // namespace
}  // namespace collage
