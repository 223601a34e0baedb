#include <map>

#include "collage/op/window.h"
#include "op_testing.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

const TensorType kData = T({2, 4, 8, 9});
const TensorType kWeight = T({6, 4, 3, 3});

TEST(ConvolutionTest, InfersShapes) {
  EXPECT_EQ(Infer("nn.conv2d", {kData, kWeight}), "Tensor[(2, 6, 6, 7), float32]");
  EXPECT_EQ(Infer("nn.conv2d", {kData, kWeight}, {{"padding", Ints{1, 1, 1, 1}}}), "Tensor[(2, 6, 8, 9), float32]");
  EXPECT_EQ(Infer("nn.conv2d", {kData, kWeight}, {{"padding", 1}}), "Tensor[(2, 6, 8, 9), float32]");
  EXPECT_EQ(Infer("nn.conv2d", {kData, kWeight}, {{"padding", Ints{1, 0}}, {"strides", Ints{2, 3}}}), "Tensor[(2, 6, 4, 3), float32]");
  EXPECT_EQ(Infer("nn.conv2d", {kData, kWeight}, {{"dilation", Ints{2, 3}}}), "Tensor[(2, 6, 4, 3), float32]");
  EXPECT_EQ(Infer("nn.conv2d", {kData, T({6, 2, 3, 3})},
                  {{"groups", 2}, {"channels", 6}, {"kernel_size", Ints{3, 3}}, {"data_layout", "NCHW"}, {"out_dtype", "float32"}}),
            "Tensor[(2, 6, 6, 7), float32]");
  EXPECT_EQ(Infer("nn.conv2d_transpose", {kData, T({4, 6, 3, 3})}), "Tensor[(2, 6, 10, 11), float32]");
  EXPECT_EQ(Infer("nn.conv2d_transpose", {kData, T({4, 3, 4, 4})},
                  {{"groups", 2}, {"strides", Ints{2, 2}}, {"padding", Ints{1, 1, 1, 1}}, {"output_padding", Ints{1, 0}}}),
            "Tensor[(2, 6, 17, 18), float32]");
}

struct Refusal {
  std::vector<Type> arguments;
  Attributes attributes;
  std::string message;
};

TEST(ConvolutionTest, RefusesWhatBreaksAConstraint) {
  const std::vector<Refusal> refusals = {
      {{TupleType{{kData}}, kWeight}, {}, "data is of type (Tensor[(2, 4, 8, 9), float32],), expected a tensor"},
      {{T({4, 8, 9}), kWeight}, {}, "data has shape (4, 8, 9), expected 4 dimensions"},
      {{kData, T({6, 4, 3})}, {}, "weight has shape (6, 4, 3), expected 4 dimensions"},
      {{T({2, 4, 8, 9}, DType::kInt64), kWeight}, {}, "data has dtype int64, expected a floating point type"},
      {{T({2, 4, 8, 9}, DType::kFloat16), kWeight}, {}, "weight has dtype float32, expected float16"},
      {{kData, T({6, 4, 3, 3}, DType::kFloat64)}, {}, "weight has dtype float64, expected float32 as data has"},
      {{kData, kWeight}, {{"out_dtype", "float64"}}, "attribute 'out_dtype' is \"float64\", expected \"float32\""},
      {{kData, kWeight}, {{"out_dtype", "real"}}, "expected the name of a dtype"},
      {{kData, kWeight}, {{"strides", Ints{0, 1}}}, "attribute 'strides' has the value 0, expected at least 1"},
      {{kData, kWeight}, {{"strides", Ints{1, 1, 1}}}, "attribute 'strides' has 3 values, expected 1 or 2"},
      {{kData, kWeight}, {{"strides", "1"}}, "attribute 'strides' is \"1\", expected a list of integers"},
      {{kData, kWeight}, {{"dilation", Ints{1, 0}}}, "attribute 'dilation' has the value 0, expected at least 1"},
      {{kData, kWeight}, {{"padding", Ints{0, 0, -1, 0}}}, "attribute 'padding' has the value -1, expected at least 0"},
      {{kData, kWeight}, {{"padding", Ints{0, 0, 0}}}, "attribute 'padding' has 3 values, expected 1, 2 or 4"},
      {{kData, kWeight}, {{"groups", 0}}, "attribute 'groups' is 0, expected at least 1"},
      {{kData, kWeight}, {{"groups", 3}}, "data has 4 channels, expected a multiple of groups=3"},
      {{kData, T({6, 3, 3, 3})}, {}, "expected 4 as its second extent"},
      {{kData, T({5, 2, 3, 3})}, {{"groups", 2}}, "weight has 5 output channels, expected a multiple of groups=2"},
      {{kData, T({0, 4, 3, 3})}, {}, "weight has shape (0, 4, 3, 3), expected extents of at least 1"},
      {{kData, kWeight}, {{"channels", 7}}, "attribute 'channels' is 7, expected 6"},
      {{kData, kWeight}, {{"kernel_size", Ints{3, 5}}}, "attribute 'kernel_size' is [3, 5], expected [3, 3]"},
      {{kData, kWeight}, {{"data_layout", "NHWC"}}, "attribute 'data_layout' is \"NHWC\", expected \"NCHW\""},
      {{kData, kWeight}, {{"kernel_layout", "HWIO"}}, "attribute 'kernel_layout' is \"HWIO\", expected \"OIHW\""},
      {{kData, T({6, 4, 9, 3})}, {}, "the window spans 9 rows, expected at most the 8 of the padded data"},
      {{kData, kWeight}, {{"dilation", Ints{1, 5}}}, "the window spans 11 columns, expected at most the 9 of the padded data"},
      {{kData, kWeight}, {{"stride", Ints{1, 1}}}, "has no attribute 'stride'"},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_THAT(Infer("nn.conv2d", refusal.arguments, refusal.attributes), HasSubstr(refusal.message));
    EXPECT_THAT(Infer("nn.conv2d", refusal.arguments, refusal.attributes), HasSubstr("nn.conv2d: "));
  }
}

TEST(ConvolutionTest, TransposedRefusesWhatBreaksAConstraint) {
  const TensorType weight = T({4, 6, 3, 3});
  const std::vector<Refusal> refusals = {
      {{kData, T({5, 6, 3, 3})}, {}, "weight has shape (5, 6, 3, 3), expected 4 as its first extent"},
      {{kData, weight}, {{"channels", 5}}, "attribute 'channels' is 5, expected 6"},
      {{kData, weight}, {{"kernel_layout", "OIHW"}}, "attribute 'kernel_layout' is \"OIHW\", expected \"IOHW\""},
      {{kData, weight}, {{"strides", Ints{2, 2}}, {"output_padding", Ints{2, 0}}}, "attribute 'output_padding' has the value 2"},
      {{kData, weight}, {{"output_padding", Ints{-1, 0}}}, "attribute 'output_padding' has the value -1, expected at least 0"},
      {{kData, weight}, {{"padding", Ints{5, 0, 5, 0}}}, "padding leaves an output of 0 rows, expected at least 1"},
      {{T({2, 4, 0, 9}), weight}, {}, "expected a height and width of at least 1"},
  };
  for (const Refusal& refusal : refusals)
    EXPECT_THAT(Infer("nn.conv2d_transpose", refusal.arguments, refusal.attributes), HasSubstr(refusal.message));
}

struct Case {
  Shape data;
  Shape weight;
  int64_t groups;
  Ints strides;
  Ints padding;
  Ints dilation;
  Ints output_padding;

  [[nodiscard]] Attributes ToAttributes() const {
    Attributes attributes = {{"groups", groups}, {"strides", strides}, {"padding", padding}, {"dilation", dilation}};
    if (!output_padding.empty()) attributes.Set("output_padding", output_padding);
    return attributes;
  }
};

const std::vector<Case> kConvolutions = {
    {{1, 1, 5, 5}, {1, 1, 3, 3}, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, {}},
    {{2, 3, 9, 7}, {5, 3, 3, 3}, 1, {1, 1}, {1, 1, 1, 1}, {1, 1}, {}},
    {{1, 3, 12, 11}, {4, 3, 7, 5}, 1, {2, 3}, {3, 1, 2, 0}, {1, 1}, {}},
    {{1, 4, 10, 13}, {6, 2, 3, 2}, 2, {1, 2}, {0, 3, 2, 1}, {2, 3}, {}},
    {{2, 6, 8, 8}, {6, 1, 3, 3}, 6, {2, 2}, {1, 1, 1, 1}, {1, 1}, {}},     // depthwise
    {{1, 3, 6, 6}, {9, 1, 3, 3}, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, {}},     // with a channel multiplier
    {{1, 70, 5, 30}, {9, 70, 2, 2}, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, {}},  // more than one block of depth and of columns
    {{1, 2, 3, 3}, {3, 2, 1, 1}, 1, {3, 3}, {2, 2, 2, 2}, {1, 1}, {}},     // windows wholly in the padding
    {{0, 2, 3, 3}, {3, 2, 1, 1}, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, {}},
};

TEST(ConvolutionTest, IsTheSumOverTheWindow) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const Case& c : kConvolutions) {
      const Tensor data = Random(T(c.data, dtype), 1);
      const Tensor weight = Random(T(c.weight, dtype), 2);
      const Reader x(data);
      const Reader w(weight);
      const int64_t outputs_of_group = c.weight[0] / c.groups;
      const auto extent = [&](size_t d) {
        return (c.data[2 + d] + c.padding[d] + c.padding[2 + d] - (c.weight[2 + d] - 1) * c.dilation[d] - 1) / c.strides[d] + 1;
      };
      ExpectTensor(Apply("nn.conv2d", {data, weight}, c.ToAttributes()), T({c.data[0], c.weight[0], extent(0), extent(1)}, dtype),
                   [&](const Index& o) {
                     double sum = 0;
                     for (int64_t i = 0; i < c.weight[1]; ++i) {
                       for (int64_t ky = 0; ky < c.weight[2]; ++ky) {
                         for (int64_t kx = 0; kx < c.weight[3]; ++kx) {
                           sum += w({o[1], i, ky, kx}) * x.Or({o[0], o[1] / outputs_of_group * c.weight[1] + i,
                                                               o[2] * c.strides[0] + ky * c.dilation[0] - c.padding[0],
                                                               o[3] * c.strides[1] + kx * c.dilation[1] - c.padding[1]},
                                                              0);
                         }
                       }
                     }
                     return sum;
                   });
    }
  }
}

const std::vector<Case> kTransposed = {
    {{1, 2, 4, 5}, {2, 3, 3, 3}, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, {0, 0}},
    {{2, 3, 4, 4}, {3, 5, 4, 4}, 1, {2, 2}, {1, 1, 1, 1}, {1, 1}, {0, 0}},  // as in DCGAN
    {{1, 4, 3, 5}, {4, 2, 3, 2}, 2, {2, 3}, {1, 0, 0, 1}, {1, 1}, {1, 2}},
    {{1, 2, 5, 4}, {2, 2, 3, 3}, 1, {3, 2}, {2, 1, 3, 2}, {2, 3}, {0, 1}},
    {{1, 3, 4, 4}, {3, 1, 2, 2}, 3, {3, 3}, {0, 0, 0, 0}, {1, 1}, {0, 0}},  // gaps that no input reaches
};

// Scatters every input element, where the kernel gathers for every output element.
TEST(ConvolutionTest, TransposedScattersTheDataThroughTheWindow) {
  for (const Case& c : kTransposed) {
    const Tensor data = Random(T(c.data), 3);
    const Tensor weight = Random(T(c.weight), 4);
    const Reader x(data);
    const Reader w(weight);
    const auto extent = [&](size_t d) {
      return (c.data[2 + d] - 1) * c.strides[d] + (c.weight[2 + d] - 1) * c.dilation[d] + 1 - c.padding[d] - c.padding[2 + d] +
             c.output_padding[d];
    };
    const int64_t channels = c.weight[1] * c.groups;
    const Shape shape = {c.data[0], channels, extent(0), extent(1)};
    std::map<Index, double> sums;
    for (int64_t n = 0; n < c.data[0]; ++n) {
      for (int64_t i = 0; i < c.data[1]; ++i) {
        for (int64_t y = 0; y < c.data[2]; ++y) {
          for (int64_t z = 0; z < c.data[3]; ++z) {
            for (int64_t o = 0; o < c.weight[1]; ++o) {
              for (int64_t ky = 0; ky < c.weight[2]; ++ky) {
                for (int64_t kx = 0; kx < c.weight[3]; ++kx) {
                  const int64_t group = i / (c.data[1] / c.groups);
                  sums[{n, group * c.weight[1] + o, y * c.strides[0] + ky * c.dilation[0] - c.padding[0],
                        z * c.strides[1] + kx * c.dilation[1] - c.padding[1]}] += x({n, i, y, z}) * w({i, o, ky, kx});
                }
              }
            }
          }
        }
      }
    }
    ExpectTensor(Apply("nn.conv2d_transpose", {data, weight}, c.ToAttributes()), T(shape), [&](const Index& o) {
      const auto at = sums.find(o);
      return at == sums.end() ? 0.0 : at->second;
    });
  }
}

TEST(ConvolutionTest, GeometryIsReadOnce) {
  const Result<Convolution> c = ReadConvolution(kData, T({6, 2, 3, 3}), {{"groups", 2}, {"padding", Ints{1, 2}}, {"strides", Ints{2, 1}}});
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(c->batch, 2);
  EXPECT_EQ(c->input_channels, 4);
  EXPECT_EQ(c->output_channels, 6);
  EXPECT_EQ(c->window.pad_begin, (std::array<int64_t, 2>{1, 2}));
  EXPECT_EQ(c->window.pad_end, (std::array<int64_t, 2>{1, 2}));
  EXPECT_EQ(c->output, (std::array<int64_t, 2>{4, 11}));
}

}  // namespace
}  // namespace collage
