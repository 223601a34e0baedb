#include <gtest/gtest.h>

#include "collage/tensor/agreement.h"
#include "tests/backend/native/native_harness.h"

namespace collage {
namespace {

using namespace collage::testing;  // NOLINT(google-build-using-namespace)
using Values = std::vector<int64_t>;

TEST(NativeReduction, EveryReductionAlongEveryAxis) {
  for (const char* op : {"sum", "mean", "max", "min", "prod", "argmax", "argmin"}) {
    for (const Values& axes : {Values{0}, Values{1}, Values{2}, Values{1, 2}, Values{0, 2}, Values{0, 1, 2}}) {
      SCOPED_TRACE(op + ToString(axes));
      const Expr x = Parameter("x", {3, 5, 37});
      ExpectMatchesReference({x}, CallNamed(op, {x}, {{"axis", axes}, {"keepdims", axes.size() == 1}}),
                             {.tolerance = kTolerance, .low = std::string(op) == "prod" ? 0.9 : -1.5, .high = 1.1});
    }
  }
}

TEST(NativeReduction, LargeRowsColumnsAndPlanes) {
  const Expr x = Parameter("x", {150, 1037});
  for (int axis : {0, 1}) {
    for (const char* op : {"sum", "max", "argmax"})
      ExpectMatchesReference({x}, CallNamed(op, {x}, {{"axis", axis}}), {.tolerance = kTolerance});
  }
  const Expr image = Parameter("image", {2, 70, 28, 28});
  ExpectMatchesReference({image}, CallNamed("mean", {image}, {{"axis", Values{2, 3}}}), {.tolerance = kTolerance});
  ExpectMatchesReference({image}, CallNamed("sum", {image}, {{"axis", Values{0, 2, 3}}}), {.tolerance = kTolerance});
  ExpectMatchesReference({image}, CallNamed("sum", {image}, {{"axis", 1}}), {.tolerance = kTolerance});
  for (const char* op : {"nn.global_avg_pool2d", "nn.global_max_pool2d"})
    ExpectMatchesReference({image}, CallNamed(op, {image}), {.tolerance = kTolerance});
}

TEST(NativeReduction, TakesInItsProducersAndGivesToItsConsumers) {
  const Expr x = Parameter("x", {20, 48});
  const Expr m = Parameter("m", {20, 1});
  const Expr centred = CallNamed("subtract", {x, m});
  const Expr variance = CallNamed("mean", {CallNamed("power", {centred, ScalarConstant(2)})}, {{"axis", -1}, {"keepdims", true}});
  ExpectMatchesReference({x, m}, variance);
  ExpectMatchesReference({x, m}, CallNamed("sqrt", {CallNamed("add", {variance, ScalarConstant(1e-5)})}));
  // More than the fusion rules would put together must be right too.
  const Expr mean = CallNamed("mean", {x}, {{"axis", -1}, {"keepdims", true}});
  const Expr distance = CallNamed("subtract", {x, mean});
  ExpectMatchesReference({x},
                         CallNamed("divide", {distance, CallNamed("sqrt", {CallNamed("mean", {CallNamed("multiply", {distance, distance})},
                                                                                     {{"axis", -1}, {"keepdims", true}})})}));
  ExpectMatchesReference({x}, MakeTuple({mean, CallNamed("max", {x}, {{"axis", 0}})}));
}

TEST(NativeReduction, IntegersAndEqualElements) {
  const Expr x = Parameter("x", {6, 40}, DType::kInt64);
  for (const char* op : {"sum", "max", "min", "argmax", "argmin"}) ExpectMatchesReference({x}, CallNamed(op, {x}, {{"axis", 1}}));
  for (bool last : {false, true}) ExpectMatchesReference({x}, CallNamed("argmax", {x}, {{"axis", 1}, {"select_last_index", last}}));
  const Expr y = Parameter("y", {4, 50});
  for (int axis : {0, 1}) ExpectMatchesReference({y}, CallNamed("sum", {CallNamed("ones_like", {y})}, {{"axis", axis}}));
}

TEST(NativeNormalisation, SoftmaxAlongEveryAxis) {
  for (const Shape& shape : {Shape{1, 10}, Shape{7, 1000}, Shape{4, 5, 33}, Shape{2, 3, 40, 40}, Shape{1, 21, 5, 70}}) {
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      SCOPED_TRACE(ToString(shape) + std::to_string(axis));
      const Expr x = Parameter("x", shape);
      const AttributeValue along(static_cast<int64_t>(axis));
      ExpectMatchesReference({x}, CallNamed("nn.softmax", {x}, {{"axis", along}}), {.low = -9, .high = 9});
      ExpectMatchesReference({x}, CallNamed("nn.log_softmax", {x}, {{"axis", along}}), {.low = -9, .high = 9});
    }
  }
}

TEST(NativeNormalisation, SoftmaxWithNeighbours) {
  const Expr x = Parameter("x", {4, 50, 50});
  const Expr softmax = CallNamed("nn.softmax", {x});
  ExpectMatchesReference({x}, CallNamed("multiply", {softmax, RandomConstant({50}, 3)}));
  ExpectMatchesReference({x}, CallNamed("transpose", {softmax}));
  const Expr scaled = CallNamed("multiply", {x, ScalarConstant(0.125)});
  ExpectMatchesReference({x}, CallNamed("nn.softmax", {CallNamed("add", {scaled, RandomConstant({1, 50}, 3)})}));
  ExpectMatchesReference({x}, MakeTuple({softmax, CallNamed("add", {softmax, x})}));
}

TEST(NativeNormalisation, LayerInstanceAndGroup) {
  for (const Shape& shape : {Shape{64, 256}, Shape{2, 5, 7}, Shape{1, 12, 9, 11}, Shape{2, 8, 28, 28}}) {
    SCOPED_TRACE(ToString(shape));
    const Expr x = Parameter("x", shape);
    for (int axis : {-1, 1}) {
      const int64_t extent = axis == 1 ? shape[1] : shape.back();
      const Expr normalised = CallNamed("nn.layer_norm", {x, RandomConstant({extent}, 1), RandomConstant({extent}, 2)}, {{"axis", axis}});
      ExpectMatchesReference({x}, normalised, {.tolerance = kTolerance});
      ExpectMatchesReference({x}, CallNamed("nn.relu", {CallNamed("add", {normalised, x})}), {.tolerance = kTolerance});
    }
    if (shape.size() < 3) continue;
    const std::vector<Expr> args = {x, RandomConstant({shape[1]}, 1), RandomConstant({shape[1]}, 2)};
    ExpectMatchesReference({x}, CallNamed("sigmoid", {CallNamed("nn.instance_norm", args)}), {.tolerance = kTolerance});
    ExpectMatchesReference({x}, CallNamed("nn.group_norm", args, {{"num_groups", shape[1] % 4 == 0 ? 4 : 1}}), {.tolerance = kTolerance});
  }
}

TEST(NativeNormalisation, LocalResponse) {
  const Expr x = Parameter("x", {2, 9, 13, 13});
  for (double beta : {0.75, 0.5, 0.6}) {
    for (int size : {5, 4}) {
      ExpectMatchesReference({x}, CallNamed("nn.lrn", {x}, {{"size", size}, {"alpha", 0.01}, {"beta", beta}, {"bias", 1.0}}));
    }
  }
}

}  // namespace
}  // namespace collage
