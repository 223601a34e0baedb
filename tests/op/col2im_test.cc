#include "collage/op/col2im.h"

#include <fmt/format.h>

#include <random>

#include "collage/op/index_walk.h"
#include "op_testing.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Col2ImTest, InfersShapes) {
  EXPECT_EQ(Infer("nn.col2im", {T({2, 12, 20})}, {{"output_size", Ints{5, 6}}, {"kernel_size", Ints{2, 2}}}),
            "Tensor[(2, 3, 5, 6), float32]");
  EXPECT_EQ(Infer("nn.col2im", {T({1, 12, 4}, DType::kInt8)}, {{"output_size", 9}, {"kernel_size", 3}, {"strides", 2}}),
            "Tensor[(1, 4, 9), int8]");
  EXPECT_EQ(Infer("nn.col2im", {T({1, 8, 8})},
                  {{"output_size", Ints{3, 3, 3}}, {"kernel_size", 2}, {"dilation", 2}, {"padding", Ints{0, 0, 0, 1, 1, 1}}}),
            "Tensor[(1, 1, 3, 3, 3), float32]");
}

TEST(Col2ImTest, RefusesWhatBreaksAConstraint) {
  const Attributes plain{{"output_size", Ints{5, 6}}, {"kernel_size", Ints{2, 2}}};
  const auto with = [&](const char* name, const Ints& values) {
    Attributes attributes = plain;
    attributes.Set(name, values);
    return attributes;
  };
  EXPECT_THAT(Infer("nn.col2im", {T({12, 20})}, plain), HasSubstr("expected 3 dimensions"));
  EXPECT_THAT(Infer("nn.col2im", {T({2, 12, 20}, DType::kBool)}, plain), HasSubstr("data has dtype bool"));
  EXPECT_THAT(Infer("nn.col2im", {T({2, 12, 20})}, {{"kernel_size", 2}}), HasSubstr("attribute 'output_size' is missing"));
  EXPECT_THAT(Infer("nn.col2im", {T({2, 12, 20})}, with("output_size", {})), HasSubstr("attribute 'output_size' is empty"));
  EXPECT_THAT(Infer("nn.col2im", {T({2, 12, 20})}, with("strides", {1, 1, 1})), HasSubstr("'strides' has 3 values, expected 1 or 2"));
  EXPECT_THAT(Infer("nn.col2im", {T({2, 12, 20})}, with("dilation", {0})), HasSubstr("'dilation' has the value 0, expected at least 1"));
  EXPECT_THAT(Infer("nn.col2im", {T({2, 12, 20})}, with("padding", {1, 1})), HasSubstr("'padding' has 2 values, expected 1 or 4"));
  EXPECT_THAT(Infer("nn.col2im", {T({2, 12, 20})}, with("kernel_size", {6, 1})),
              HasSubstr("a block spans 6 along spatial dimension 0, expected at most the 5 of the padded image"));
  EXPECT_THAT(Infer("nn.col2im", {T({2, 10, 20})}, plain), HasSubstr("expected (batch, channels * 4, 20) for 20 blocks of shape (2, 2)"));
  EXPECT_THAT(Infer("nn.col2im", {T({2, 12, 21})}, plain), HasSubstr("data has shape (2, 12, 21)"));
  const Ints large(40, int64_t{1} << 30);
  EXPECT_THAT(Infer("nn.col2im", {T({1, 4, 4})}, {{"output_size", large}, {"kernel_size", large}}), HasSubstr("data has shape (1, 4, 4)"));
}

TEST(Col2ImTest, AddsUpWhereBlocksOverlap) {
  const Tensor data = Floats({1, 3, 3}, {1, 2, 3, 10, 20, 30, 100, 200, 300});
  EXPECT_THAT(Apply("nn.col2im", {data}, {{"output_size", 5}, {"kernel_size", 3}}).ToDouble(), ElementsAre(1, 12, 123, 230, 300));
  EXPECT_THAT(Apply("nn.col2im", {data}, {{"output_size", 3}, {"kernel_size", 3}, {"padding", 1}}).ToDouble(), ElementsAre(12, 123, 230));
  EXPECT_THAT(Apply("nn.col2im", {data}, {{"output_size", 8}, {"kernel_size", 3}, {"strides", 2}}).ToDouble(),
              ElementsAre(1, 10, 102, 20, 203, 30, 300, 0));
}

TEST(Col2ImTest, IntegersWrapAround) {
  const Tensor data = Make<int8_t>({1, 2, 2}, DType::kInt8, {100, 100, 100, 100});
  EXPECT_THAT(Apply("nn.col2im", {data}, {{"output_size", 3}, {"kernel_size", 2}}).ToDouble(), ElementsAre(100, -56, 100));
}

struct Geometry {
  Ints image, kernel, strides, dilation, padding;
  Ints blocks;

  [[nodiscard]] Attributes ToAttributes() const {
    return {{"output_size", image}, {"kernel_size", kernel}, {"strides", strides}, {"dilation", dilation}, {"padding", padding}};
  }
};

Geometry RandomGeometry(std::mt19937& random) {
  const auto pick = [&](int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random); };
  Geometry g;
  const int64_t dimensions = pick(1, 3);
  for (int64_t d = 0; d < dimensions; ++d) {
    g.kernel.push_back(pick(1, 4));
    g.strides.push_back(pick(1, 6));
    g.dilation.push_back(pick(1, 4));
    const int64_t span = (g.kernel.back() - 1) * g.dilation.back() + 1;
    const int64_t padded = span + pick(0, 9);
    g.blocks.push_back((padded - span) / g.strides.back() + 1);
    const int64_t before = pick(0, padded - 1);
    const int64_t behind = pick(0, padded - 1 - before);
    g.padding.insert(g.padding.begin() + d, before);
    g.padding.push_back(behind);
    g.image.push_back(padded - before - behind);
  }
  return g;
}

TEST(Col2ImTest, IsTheSumOfTheTapsThatMeetAnElement) {
  std::mt19937 random(1);
  for (size_t round = 0; round < Rounds(200); ++round) {
    const Geometry g = RandomGeometry(random);
    SCOPED_TRACE(fmt::format("output_size {}, kernel_size {}, strides {}, dilation {}, padding {}", ToString(g.image), ToString(g.kernel),
                             ToString(g.strides), ToString(g.dilation), ToString(g.padding)));
    const Tensor data = Random(T({2, 3 * ElementCount(g.kernel), ElementCount(g.blocks)}), round);
    const Col2Im c = *ReadCol2Im(data.type(), g.ToAttributes());
    ASSERT_EQ(c.blocks, g.blocks);
    Shape split{2, 3};
    split.insert(split.end(), g.kernel.begin(), g.kernel.end());
    split.insert(split.end(), g.blocks.begin(), g.blocks.end());
    const Tensor parts = data.Reshaped(split);
    Shape result{2, 3};
    result.insert(result.end(), g.image.begin(), g.image.end());
    // By TapsAlong, which generated code goes by; the kernel goes through blocks instead.
    ExpectTensor(Apply("nn.col2im", {data}, g.ToAttributes()), T(result), [&, x = Reader(parts)](const Index& o) {
      const size_t dimensions = g.image.size();
      double sum = 0;
      for (IndexWalk walk(c.kernel); walk.Valid(); walk.Next()) {
        Index source{o[0], o[1]};
        source.insert(source.end(), walk.index().begin(), walk.index().end());
        bool is_met = true;
        for (size_t d = 0; d < dimensions; ++d) {
          const TapsAlong taps(c, d);
          const int64_t place = o[2 + d] + c.pad_begin[d];
          const int64_t first = place % c.stride[d] / taps.divisor * taps.factor % taps.step;
          is_met = is_met && place % taps.divisor == 0 && walk[d] >= first && (walk[d] - first) % taps.step == 0;
          source.push_back((place - walk[d] * c.dilation[d]) / c.stride[d]);
          is_met = is_met && place >= walk[d] * c.dilation[d];
        }
        if (is_met) sum += x.Or(source, 0);
      }
      return sum;
    });
  }
}

}  // namespace
}  // namespace collage
