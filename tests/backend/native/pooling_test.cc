#include <gtest/gtest.h>

#include "tests/backend/native/native_harness.h"

namespace collage {
namespace {

using namespace collage::testing;  // NOLINT(google-build-using-namespace)
using Values = std::vector<int64_t>;

struct Case {
  Shape data;
  Values window, strides, padding;
  bool ceil_mode = false;
};

const std::vector<Case> kCases = {{{1, 3, 8, 8}, {2, 2}, {2, 2}, {0, 0, 0, 0}},        {{2, 5, 14, 14}, {3, 3}, {1, 1}, {1, 1, 1, 1}},
                                  {{1, 7, 57, 61}, {3, 3}, {2, 2}, {1, 1, 1, 1}},      {{1, 4, 13, 15}, {3, 2}, {2, 3}, {0, 1, 1, 0}, true},
                                  {{1, 2, 7, 7}, {7, 7}, {1, 1}, {0, 0, 0, 0}},        {{1, 16, 112, 112}, {3, 3}, {2, 2}, {1, 1, 1, 1}},
                                  {{3, 1, 5, 40}, {1, 5}, {1, 2}, {0, 2, 0, 2}, true}, {{1, 6, 1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}}};

TEST(NativePooling, LargestAndMean) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(ToString(c.data) + ToString(c.window));
    const Expr x = Parameter("x", c.data);
    Attributes attributes{{"pool_size", c.window}, {"strides", c.strides}, {"padding", c.padding}, {"ceil_mode", c.ceil_mode}};
    ExpectMatchesReference({x}, CallNamed("nn.max_pool2d", {x}, attributes));
    for (bool include : {false, true}) {
      attributes.Set("count_include_pad", include);
      ExpectMatchesReference({x}, CallNamed("nn.avg_pool2d", {x}, attributes));
    }
  }
}

TEST(NativePooling, WithDilationAndNeighbours) {
  const Expr x = Parameter("x", {1, 6, 20, 22});
  const Expr pooled =
      CallNamed("nn.max_pool2d", {x}, {{"pool_size", Values{3, 3}}, {"dilation", Values{2, 2}}, {"padding", Values{2, 2, 2, 2}}});
  ExpectMatchesReference({x}, CallNamed("sigmoid", {CallNamed("add", {pooled, x})}));
  ExpectMatchesReference({x}, CallNamed("nn.bias_add", {pooled, RandomConstant({6}, 2)}));
  ExpectMatchesReference({x}, CallNamed("transpose", {pooled}));
}

}  // namespace
}  // namespace collage
