#include <fmt/format.h>

#include "collage/form/rules.h"
#include "tests/form/form_testing.h"

namespace collage {
namespace {

std::string Constant(int index, const std::string& shape) {
  return fmt::format("meta[relay.Constant][{}] /*Tensor[({}), float32]*/", index, shape);
}

std::string Of(const std::string& data, const std::string& body) { return "fn (%x: Tensor[(" + data + "), float32]) { " + body + " }"; }

std::string Convolved(const std::string& data, const std::string& weight, const std::string& attributes) {
  return Of(data, "nn.conv2d(%x, " + Constant(0, weight) + ", " + attributes + ")");
}

TEST(StridedPointwiseForm, ComputesTheSame) {
  ExpectEqualForms(Convolved("2, 6, 5, 8", "4, 6, 1, 1", "strides=[2, 3]"), StridedPointwiseForm());
  ExpectEqualForms(Convolved("1, 6, 7, 7", "4, 3, 1, 1", "strides=[2, 2], groups=2"), StridedPointwiseForm());
}

TEST(StridedPointwiseForm, IsNoneWhereItsConditionFails) {
  ExpectNoForm(Convolved("1, 6, 7, 7", "4, 6, 1, 1", "strides=[1, 1]"), StridedPointwiseForm());
  ExpectNoForm(Convolved("1, 6, 7, 7", "4, 6, 3, 3", "strides=[2, 2]"), StridedPointwiseForm());
  ExpectNoForm(Convolved("1, 6, 7, 7", "4, 6, 1, 1", "strides=[2, 2], padding=[1, 1]"), StridedPointwiseForm());
}

TEST(PointwiseProductForm, ComputesTheSame) { ExpectEqualForms(Convolved("1, 6, 5, 7", "4, 6, 1, 1", "groups=1"), PointwiseProductForm()); }

TEST(PointwiseProductForm, IsNoneWhereItsConditionFails) {
  ExpectNoForm(Convolved("2, 6, 5, 7", "4, 6, 1, 1", "groups=1"), PointwiseProductForm());
  ExpectNoForm(Convolved("1, 6, 5, 7", "4, 3, 1, 1", "groups=2"), PointwiseProductForm());
  ExpectNoForm(Convolved("1, 6, 5, 7", "4, 6, 1, 1", "strides=[1, 2]"), PointwiseProductForm());
  ExpectNoForm(Convolved("1, 6, 1, 1", "4, 6, 1, 1", "groups=1"), PointwiseProductForm());
}

TEST(WholePlaneForm, ComputesTheSame) {
  ExpectEqualForms(Convolved("3, 6, 1, 1", "4, 6, 1, 1", "groups=1"), WholePlaneForm());
  ExpectEqualForms(Convolved("2, 3, 4, 5", "4, 3, 4, 5", "strides=[2, 2]"), WholePlaneForm());
}

TEST(WholePlaneForm, IsNoneWhereItsConditionFails) {
  ExpectNoForm(Convolved("2, 3, 4, 5", "4, 3, 4, 4", "groups=1"), WholePlaneForm());
  ExpectNoForm(Convolved("2, 3, 4, 5", "4, 3, 4, 5", "padding=[0, 0, 0, 1]"), WholePlaneForm());
  ExpectNoForm(Convolved("2, 6, 1, 1", "4, 3, 1, 1", "groups=2"), WholePlaneForm());
}

TEST(PooledPointwiseForm, ComputesTheSame) {
  const std::string convolution = "nn.conv2d(%x, " + Constant(0, "4, 6, 1, 1") + ")";
  const std::string biased = "nn.bias_add(" + convolution + ", " + Constant(1, "4,") + ")";
  for (const std::string& inner : {convolution, biased}) {
    for (const char* attributes : {"pool_size=[2, 2], strides=[2, 2]", "pool_size=[3, 2], strides=[2, 1], padding=[1, 0, 1, 1]",
                                   "pool_size=[2, 2], strides=[2, 2], ceil_mode=True"}) {
      ExpectEqualForms(Of("2, 6, 5, 7", "nn.avg_pool2d(" + inner + ", " + attributes + ")"), PooledPointwiseForm());
    }
    ExpectEqualForms(Of("2, 6, 5, 7", "nn.global_avg_pool2d(" + inner + ")"), GloballyPooledPointwiseForm());
  }
  ExpectEqualForms(Of("2, 6, 5, 7", "nn.avg_pool2d(" + convolution + ", pool_size=[2, 2], padding=[1, 1], count_include_pad=True)"),
                   PooledPointwiseForm());
}

TEST(PooledPointwiseForm, IsNoneWhereItsConditionFails) {
  const std::string convolution = "nn.conv2d(%x, " + Constant(0, "4, 6, 1, 1") + ")";
  const std::string biased = "nn.bias_add(" + convolution + ", " + Constant(1, "4,") + ")";
  ExpectNoForm(Of("2, 6, 5, 7", "nn.avg_pool2d(" + biased + ", pool_size=[2, 2], padding=[1, 1], count_include_pad=True)"),
               PooledPointwiseForm());
  ExpectNoForm(Of("2, 6, 5, 7", "nn.avg_pool2d(nn.relu(" + convolution + "), pool_size=[2, 2])"), PooledPointwiseForm());
  ExpectNoForm(Of("2, 6, 5, 7", "nn.avg_pool2d(nn.conv2d(%x, " + Constant(0, "4, 6, 2, 2") + "), pool_size=[2, 2])"),
               PooledPointwiseForm());
  ExpectNoForm(Of("2, 6, 5, 7", "%0 = " + convolution + "; (%0, nn.avg_pool2d(%0, pool_size=[2, 2]))"), PooledPointwiseForm());
}

TEST(MergedGroupsForm, ComputesTheSame) {
  ExpectEqualForms(Convolved("2, 32, 5, 6", "32, 4, 3, 3", "strides=[2, 1], padding=[1, 1, 0, 1], groups=8"), MergedGroupsForm());
  ExpectEqualForms(Convolved("1, 12, 5, 6", "24, 2, 1, 3", "dilation=[1, 2], groups=6"), MergedGroupsForm());
}

TEST(MergedGroupsForm, FillsVectorsAndNoMore) {
  const FormedGraph formed = FormsIn(FunctionOf(Convolved("1, 32, 5, 6", "32, 4, 3, 3", "groups=8")), {MergedGroupsForm()});
  ASSERT_EQ(formed.forms.size(), 1u);
  EXPECT_NE(PrintExpr(WithForm(formed, 0)).text.find("Tensor[(32, 16, 3, 3), float32]*/, groups=2)"), std::string::npos);
  ExpectNoForm(Convolved("1, 32, 5, 6", "32, 16, 3, 3", "groups=2"), MergedGroupsForm());
  ExpectNoForm(Convolved("1, 32, 5, 6", "32, 32, 3, 3", "groups=1"), MergedGroupsForm());
  ExpectNoForm(Convolved("1, 32, 5, 6", "64, 1, 3, 3", "groups=32"), MergedGroupsForm());
}

TEST(SiblingForms, ComputeTheSame) {
  const auto convolution = [](int index, const std::string& outputs) {
    return fmt::format("nn.conv2d(%x, {}, padding=[1, 1], channels={})", Constant(index, outputs + ", 3, 3, 3"), outputs);
  };
  ExpectEqualForms(Of("2, 3, 5, 6", fmt::format("({}, {}, {})", convolution(0, "4"), convolution(1, "2"), convolution(2, "1"))),
                   SiblingConvolutionsForm());
  const auto dense = [](int index, const std::string& units) {
    return fmt::format("nn.dense(%x, {}, units={})", Constant(index, units + ", 6"), units);
  };
  ExpectEqualForms(Of("2, 5, 6", fmt::format("({}, {})", dense(0, "4"), dense(1, "3"))), SiblingDensesForm());
  const auto product = [](int index, const std::string& columns) {
    return fmt::format("nn.matmul(%x, {})", Constant(index, "6, " + columns));
  };
  ExpectEqualForms(Of("2, 5, 6", fmt::format("({}, {}, {})", product(0, "4"), product(1, "4"), product(2, "3"))), SiblingProductsForm());
}

TEST(SiblingForms, AreOfOneTensorAndAlike) {
  const auto convolution = [](const char* data, int index, const char* weight, const char* attributes) {
    return fmt::format("nn.conv2d({}, {}, {})", data, Constant(index, weight), attributes);
  };
  const std::string one = convolution("%x", 0, "4, 3, 3, 3", "padding=[1, 1]");
  for (const std::string& other :
       {convolution("%x", 1, "4, 3, 3, 3", "padding=[0, 0]"), convolution("%x", 1, "4, 3, 1, 1", "padding=[1, 1]"),
        convolution("nn.relu(%x)", 1, "4, 3, 3, 3", "padding=[1, 1]")}) {
    ExpectNoForm(Of("2, 3, 5, 6", "(" + one + ", " + other + ")"), SiblingConvolutionsForm());
  }
  ExpectNoForm(Of("2, 4, 5, 6", "(nn.conv2d(%x, " + Constant(0, "4, 2, 3, 3") + ", groups=2), nn.conv2d(%x, " + Constant(1, "4, 2, 3, 3") +
                                    ", groups=2))"),
               SiblingConvolutionsForm());
  ExpectNoForm(Of("2, 6", "(nn.matmul(%x, " + Constant(0, "4, 6") + ", transpose_b=True), nn.matmul(%x, " + Constant(1, "4, 6") +
                              ", transpose_b=True))"),
               SiblingProductsForm());
}

}  // namespace
}  // namespace collage
