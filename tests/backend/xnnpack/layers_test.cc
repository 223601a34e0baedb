#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/backend/kernel_harness.h"

namespace collage {
namespace {

using namespace testing_backend;  // NOLINT(google-build-using-namespace)
using testing::ElementsAre;
using testing::IsEmpty;
using Ints = std::vector<int64_t>;

const Backend& Xnnpack() {
  static const Backend& backend = BackendNamed("xnnpack");
  return backend;
}

std::vector<Variant> VariantsOf(const Expr& function) { return Xnnpack().Variants(*function->As<Function>(), Cpu(2)); }

Expr Convolution(const Expr& x, const Shape& weights, Attributes attributes = {}) {
  return CallOp("nn.conv2d", {x, RandomConstant(weights, 2)}, std::move(attributes));
}

TEST(XnnpackTest, ConvolutionsOfAnyGeometry) {
  struct Case {
    Shape data, weights;
    Attributes attributes;
  };
  for (const Case& c :
       std::vector<Case>{{{1, 3, 17, 19}, {8, 3, 3, 3}, {{"padding", Ints{1, 1}}, {"strides", Ints{2, 2}}}},
                         {{2, 16, 7, 9}, {24, 16, 1, 1}, {}},
                         {{1, 6, 9, 8}, {10, 6, 2, 5}, {{"padding", Ints{0, 1, 2, 3}}}},
                         {{1, 8, 12, 12}, {12, 4, 3, 3}, {{"groups", 2}, {"dilation", Ints{2, 3}}}},
                         {{1, 20, 15, 14}, {20, 1, 3, 3}, {{"groups", 20}, {"padding", Ints{1, 1}}}},
                         {{1, 13, 15, 14}, {13, 1, 5, 5}, {{"groups", 13}, {"padding", Ints{2, 2}}, {"strides", Ints{2, 1}}}},
                         {{1, 5, 9, 9}, {10, 1, 3, 3}, {{"groups", 5}}},
                         {{1, 64, 1, 1}, {32, 64, 1, 1}, {}}}) {
    SCOPED_TRACE(ToString(c.data) + " by " + ToString(c.weights));
    const Expr x = Input(c.data);
    const Expr product = Convolution(x, c.weights, c.attributes);
    const Expr biased = CallOp("nn.bias_add", {product, RandomConstant({c.weights[0]}, 3)});
    const Expr added = CallOp("add", {RandomConstant({c.weights[0], 1, 1}, 4), product});
    for (const Expr& body : {product, biased, CallOp("nn.relu", {product}), CallOp("nn.relu", {biased}),
                             CallOp("clip", {added}, {{"a_min", -0.25}, {"a_max", 0.5}})})
      EXPECT_THAT(CheckAllVariants(Xnnpack(), FunctionOf({x}, body)), ElementsAre("nhwc"));
  }
}

TEST(XnnpackTest, DenseLayersOfAnyNumberOfRows) {
  for (const Shape& data : {Shape{1, 3}, {5, 64}, {197, 48}, {2, 33, 20}}) {
    for (const int64_t units : {1, 17, 100}) {
      SCOPED_TRACE(ToString(data) + " to " + std::to_string(units));
      const Expr x = Input(data);
      const Expr dense = CallOp("nn.dense", {x, RandomConstant({units, data.back()}, 2)});
      const Expr biased = CallOp("nn.bias_add", {dense, RandomConstant({units}, 3)}, {{"axis", -1}});
      for (const Expr& body : {dense, CallOp("nn.relu", {biased})})
        EXPECT_THAT(CheckAllVariants(Xnnpack(), FunctionOf({x}, body)), ElementsAre("rows"));
    }
  }
}

TEST(XnnpackTest, Poolings) {
  const Expr x = Input({2, 20, 13, 14});
  const Attributes padded = {{"pool_size", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"padding", Ints{1, 1}}};
  for (const Expr& body :
       {CallOp("nn.max_pool2d", {x}, padded), CallOp("nn.max_pool2d", {x}, {{"pool_size", Ints{2, 4}}, {"strides", Ints{2, 1}}}),
        CallOp("nn.avg_pool2d", {x}, padded), CallOp("nn.avg_pool2d", {x}, {{"pool_size", Ints{5, 2}}}),
        CallOp("nn.global_avg_pool2d", {x})})
    EXPECT_THAT(CheckAllVariants(Xnnpack(), FunctionOf({x}, body)), ElementsAre("nhwc"));
}

TEST(XnnpackTest, OtherFunctionsAreDeclined) {
  const Expr x = Input({1, 8, 6, 6});
  const Expr odd = Input({1, 6, 6, 6});
  const Expr product = Convolution(x, {8, 8, 3, 3});
  const Expr relu = CallOp("nn.relu", {product});
  const Attributes counted = {{"pool_size", Ints{3, 3}}, {"padding", Ints{1, 1}}, {"count_include_pad", true}};
  for (const Expr& body : {CallOp("nn.relu", {x}), CallOp("nn.relu", {CallOp("clip", {product}, {{"a_min", -1.0}, {"a_max", 1.0}})}),
                           CallOp("add", {relu, RandomConstant({8, 1, 1}, 1)}), CallOp("add", {product, RandomConstant({1, 4, 4}, 1)}),
                           CallOp("nn.avg_pool2d", {x}, counted)})
    EXPECT_THAT(VariantsOf(FunctionOf({x}, body)), IsEmpty());
  EXPECT_THAT(VariantsOf(FunctionOf({odd}, CallOp("nn.global_avg_pool2d", {odd}))), IsEmpty()) << "it would read beyond the tensor";
}

// The library allows itself to read 16 bytes more than it is given.
TEST(XnnpackTest, NothingIsReadBeyondATensor) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (const int64_t channels : {1, 3, 5, 7, 8, 9, 15, 20, 31}) {
    const Expr x = Input({1, channels, 5, 5});
    const Attributes same = {{"padding", Ints{1, 1}}};
    Attributes depthwise = same;
    depthwise.Set("groups", channels);
    for (const Expr& body :
         {Convolution(x, {6, channels, 3, 3}, same), Convolution(x, {6, channels, 1, 1}), Convolution(x, {channels, 1, 3, 3}, depthwise),
          CallOp("nn.global_avg_pool2d", {x}), CallOp("nn.max_pool2d", {x}, {{"pool_size", Ints{2, 2}}}),
          CallOp("nn.avg_pool2d", {x}, {{"pool_size", Ints{2, 2}}})}) {
      const Expr function = FunctionOf({x}, body);
      for (const Variant& variant : VariantsOf(function)) {
        std::unique_ptr<Kernel> kernel = *Xnnpack().Compile(*function->As<Function>(), Cpu(1), variant);
        const size_t bytes = PhysicalByteCount(kernel->inputs()[0].type, kernel->inputs()[0].layout);
        const size_t pages = (bytes + page - 1) / page;
        auto* memory = static_cast<char*>(mmap(nullptr, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        ASSERT_EQ(mprotect(memory + pages * page, page, PROT_NONE), 0);
        const Buffer result(PhysicalByteCount(kernel->outputs()[0].type, kernel->outputs()[0].layout));
        const void* input = memory + pages * page - bytes;
        void* output = result.data();
        EXPECT_TRUE(kernel->Run({&input, 1}, {&output, 1}, nullptr));
        munmap(memory, (pages + 1) * page);
      }
    }
  }
}

}  // namespace
}  // namespace collage
