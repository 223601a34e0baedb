#include <fmt/format.h>

#include <random>

#include "collage/form/rules.h"
#include "tests/form/form_testing.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

std::string Volume(const std::string& data, const std::string& weight, const std::string& attributes) {
  return fmt::format("fn (%x: Tensor[({}), float32]) {{ nn.conv3d(%x, meta[relay.Constant][0] /*Tensor[({}), float32]*/, {}) }}", data,
                     weight, attributes);
}

TEST(ShortDepthForm, FoldsDepthIntoChannels) {
  const FormedGraph formed =
      FormsIn(FunctionOf(Volume("1, 4, 3, 8, 8", "5, 4, 3, 3, 3", "padding=[1, 1, 1, 1, 1, 1]")), {ShortDepthForm()});
  ASSERT_EQ(formed.forms.size(), 1u);
  EXPECT_EQ(PrintExpr(WithForm(formed, 0)).text,
            "fn (%x: Tensor[(1, 4, 3, 8, 8), float32]) -> Tensor[(1, 5, 3, 8, 8), float32] {\n"
            "  %0 = reshape(%x, newshape=[1, 12, 8, 8]);\n"
            "  %1 = nn.conv2d(%0, meta[relay.Constant][0] /*Tensor[(15, 12, 3, 3), float32]*/, strides=[1, 1], padding=[1, 1, 1, 1], "
            "dilation=[1, 1], groups=1);\n"
            "  reshape(%1, newshape=[1, 5, 3, 8, 8])\n"
            "}\n");
}

TEST(ShortDepthForm, ComputesTheSameForAllGeometries) {
  std::mt19937 random(2);
  const auto pick = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  size_t with_form = 0;
  for (size_t tried = 0; tried < Rounds(400); ++tried) {
    std::array<int, 3> data{};
    std::array<int, 3> kernel{};
    std::array<int, 6> pads{};
    for (int& extent : data) extent = pick(1, 5);
    for (int& extent : kernel) extent = pick(1, 3);
    for (int& pad : pads) pad = pick(0, 2);
    const std::array<int, 3> stride = {pick(1, 2), pick(1, 2), pick(1, 2)};
    const std::array<int, 3> dilation = {pick(1, 2), pick(1, 2), pick(1, 2)};
    const int groups = pick(1, 2);
    bool is_possible = true;
    for (size_t d = 0; d < 3; ++d) is_possible = is_possible && data[d] + pads[d] + pads[d + 3] > (kernel[d] - 1) * dilation[d];
    if (!is_possible) continue;
    const int inputs = pick(1, 2);
    const std::string text = Volume(fmt::format("{}, {}, {}", pick(1, 2), groups * inputs, fmt::join(data, ", ")),
                                    fmt::format("{}, {}, {}", groups * pick(1, 3), inputs, fmt::join(kernel, ", ")),
                                    fmt::format("strides=[{}], padding=[{}], dilation=[{}], groups={}", fmt::join(stride, ", "),
                                                fmt::join(pads, ", "), fmt::join(dilation, ", "), groups));
    const FormedGraph formed = FormsIn(FunctionOf(text), {ShortDepthForm()});
    with_form += formed.forms.size();
    ASSERT_NO_FATAL_FAILURE(ExpectEqualForms(text, ShortDepthForm(), formed.forms.size()));
  }
  EXPECT_GT(with_form, Rounds(50));
}

TEST(ShortDepthForm, IsNoneForDepthsThatAreMostlyZero) {
  ExpectNoForm(Volume("1, 2, 16, 4, 4", "2, 2, 3, 3, 3", "padding=[1, 1, 1, 1, 1, 1]"), ShortDepthForm());
}

TEST(DepthAloneForm, ComputesTheSame) {
  ExpectEqualForms(Volume("2, 4, 9, 3, 5", "6, 2, 3, 1, 1", "strides=[2, 1, 1], padding=[1, 0, 0, 2, 0, 0], dilation=[2, 1, 1], groups=2"),
                   DepthAloneForm());
  ExpectEqualForms(Volume("1, 4, 9, 3, 5", "6, 4, 1, 1, 1", "groups=1"), DepthAloneForm());
}

TEST(DepthAloneForm, IsNoneWhereItReachesAcross) {
  ExpectNoForm(Volume("1, 2, 4, 4, 4", "2, 2, 3, 1, 3", "groups=1"), DepthAloneForm());
  ExpectNoForm(Volume("1, 2, 4, 4, 4", "2, 2, 1, 1, 1", "strides=[1, 1, 2]"), DepthAloneForm());
  ExpectNoForm(Volume("1, 2, 4, 4, 4", "2, 2, 1, 1, 1", "padding=[0, 0, 0, 0, 1, 0]"), DepthAloneForm());
}

}  // namespace
}  // namespace collage
