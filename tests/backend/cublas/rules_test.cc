// What the rules take and refuse: for that no GPU is needed, and no library.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "collage/dataflow/dataflow_graph.h"
#include "collage/pattern/fusion.h"
#include "tests/backend/written_out.h"

namespace collage {
namespace {

using ::testing::HasSubstr;
using namespace testing_backend;  // NOLINT(google-build-using-namespace)

const Backend& Cublas() {
  static const std::vector<BackendRecord> records = AvailableBackends({DeviceKind::kCuda, 0, 1});
  const auto found = std::find_if(records.begin(), records.end(), [](const BackendRecord& record) { return record.name == "cublas"; });
  COLLAGE_CHECK(found != records.end() && found->backend);
  return *found->backend;
}

/// What becomes of a function with one product: the label if its body is taken whole, else why not.
std::string Taken(const Expr& function) {
  const DataflowGraph graph(function);
  std::string taken = "nothing begins here";
  for (const PatternRule& rule : Cublas().Rules().patterns) {
    ForEachMatch(graph, rule, [&](const PatternMatch& found) {
      if (found.match.root != function->As<Function>()->body) return;
      const Verdict verdict = rule.check(found.match);
      taken = verdict.accepted ? LabelOf(rule, graph, found.inside) : verdict.reason;
    });
  }
  return taken;
}

TEST(CublasRulesTest, ProductsAreTakenWithConstantsAndWithVariables) {
  const Expr x = Input({2, 6, 20});
  EXPECT_EQ(Taken(FunctionOf({x}, CallOp("nn.dense", {x, RandomConstant({17, 20}, 2)}))), "cublas.dense");
  const Expr y = Input({20, 7});
  EXPECT_EQ(Taken(FunctionOf({x, y}, CallOp("nn.matmul", {x, y}))), "cublas.matmul");
  const Expr z = Input({2, 5, 20});
  EXPECT_EQ(Taken(FunctionOf({x, z}, CallOp("nn.batch_matmul", {x, z}))), "cublas.batch_matmul");
}

TEST(CublasRulesTest, AVectorIsOneRow) {
  const Expr x = Input({20});
  const Expr dense = CallOp("nn.dense", {x, RandomConstant({17, 20}, 2)});
  EXPECT_EQ(Taken(FunctionOf({x}, CallOp("add", {dense, RandomConstant({17}, 3)}))), "cublas.dense_add");
}

TEST(CublasRulesTest, AFactorABiasASumAndAnActivationBelongToTheProduct) {
  const Expr x = Input({6, 20});
  const Expr sum = Input({6, 17});
  const Expr dense = CallOp("nn.dense", {x, RandomConstant({17, 20}, 2)});
  const Expr biased = CallOp("nn.bias_add", {CallOp("divide", {dense, Scalar(8)}), RandomConstant({17}, 3)}, {{"axis", -1}});
  const Expr all = CallOp("nn.relu", {CallOp("add", {sum, biased})});
  EXPECT_EQ(Taken(FunctionOf({x, sum}, all)), "cublas.dense_divide_bias_add_relu");
  EXPECT_EQ(Taken(FunctionOf({x}, CallOp("multiply", {Scalar(0.125), dense}))), "cublas.dense_multiply");
  EXPECT_EQ(Taken(FunctionOf({x}, CallOp("add", {dense, RandomConstant({6, 17}, 3)}))), "cublas.dense_add");
  const Expr sum_first = CallOp("add", {CallOp("add", {dense, sum}), RandomConstant({1, 17}, 3)});
  EXPECT_EQ(Taken(FunctionOf({x, sum}, sum_first)), "cublas.dense_add_add");
}

TEST(CublasRulesTest, GeluByTanhIsTakenWithABiasAndWithout) {
  const Expr x = Input({6, 20});
  const Expr dense = CallOp("nn.dense", {x, RandomConstant({17, 20}, 2)});
  EXPECT_THAT(Taken(FunctionOf({x}, GeluByTanh(dense))), HasSubstr("cublas.dense_"));
  EXPECT_THAT(Taken(FunctionOf({x}, GeluByTanh(CallOp("add", {dense, RandomConstant({17}, 3)})))), HasSubstr("cublas.dense_add_"));
}

TEST(CublasRulesTest, OtherActivationsAreRefusedByName) {
  const Expr x = Input({6, 20});
  const Expr dense = CallOp("nn.dense", {x, RandomConstant({17, 20}, 2)});
  EXPECT_THAT(Taken(FunctionOf({x}, CallOp("tanh", {dense}))), HasSubstr("not tanh"));
  EXPECT_THAT(Taken(FunctionOf({x}, CallOp("power", {dense, Scalar(2)}))), HasSubstr("not power"));
  for (const Expr& body : {CallOp("sigmoid", {dense}), GeluByErf(dense), CallOp("add", {CallOp("nn.relu", {dense}), Scalar(1)})})
    EXPECT_EQ(Taken(FunctionOf({x}, body)), "nothing begins here");
}

TEST(CublasRulesTest, WhatIsAddedIsForColumnsOrOfTheResultsShape) {
  const Expr x = Input({2, 6, 20});
  const Expr dense = CallOp("nn.dense", {x, RandomConstant({17, 20}, 2)});
  for (const Expr& added : {RandomConstant({6, 1}, 3), RandomConstant({6, 17}, 3), Scalar(1)})
    EXPECT_THAT(Taken(FunctionOf({x}, CallOp("add", {dense, added}))), HasSubstr("not add"));
  const Expr of_rows = CallOp("nn.bias_add", {dense, RandomConstant({6}, 3)}, {{"axis", 1}});
  EXPECT_THAT(Taken(FunctionOf({x}, of_rows)), HasSubstr("not nn.bias_add"));
  const Expr computed = Input({17});
  EXPECT_THAT(Taken(FunctionOf({x, computed}, CallOp("add", {dense, computed}))), HasSubstr("not add"));
  const Expr one = Input({1, 20});
  const Expr grown = CallOp("add", {CallOp("nn.dense", {one, RandomConstant({17, 20}, 2)}), RandomConstant({6, 17}, 3)});
  EXPECT_EQ(Taken(FunctionOf({one}, grown)), "nothing begins here");
}

TEST(CublasRulesTest, AFactorIsConstantOneNumberAndNextToTheProduct) {
  const Expr x = Input({6, 20});
  const Expr dense = CallOp("nn.dense", {x, RandomConstant({17, 20}, 2)});
  const auto refusal = [&](const Expr& body) { return Taken(FunctionOf({x}, body)); };
  EXPECT_THAT(refusal(CallOp("multiply", {dense, RandomConstant({17}, 3)})), HasSubstr("not multiply"));
  EXPECT_THAT(refusal(CallOp("divide", {Scalar(1), dense})), HasSubstr("not divide"));
  EXPECT_THAT(refusal(CallOp("multiply", {CallOp("add", {dense, RandomConstant({17}, 3)}), Scalar(2)})), HasSubstr("not multiply"));
  EXPECT_THAT(refusal(CallOp("multiply", {dense, dense})), HasSubstr("not multiply"));
}

TEST(CublasRulesTest, BatchesLieEquallyFarApart) {
  struct Case {
    Shape a, b;
    bool is_taken;
  };
  for (const Case& c : std::vector<Case>{{{2, 3, 4, 5}, {2, 3, 5, 7}, true},
                                         {{3, 4, 5}, {5, 7}, true},
                                         {{4, 5}, {2, 3, 5, 7}, true},
                                         {{2, 3, 4, 5}, {1, 1, 5, 7}, true},
                                         {{2, 1, 4, 5}, {2, 3, 5, 7}, false},
                                         {{2, 1, 4, 5}, {3, 5, 7}, false}}) {
    const Expr a = Input(c.a);
    const Expr b = Input(c.b);
    EXPECT_THAT(Taken(FunctionOf({a, b}, CallOp("nn.matmul", {a, b}))),
                HasSubstr(c.is_taken ? "cublas.matmul" : "do not lie equally far apart"));
  }
}

TEST(CublasRulesTest, ElementsAreFloat32OrFloat16AndThereAreSome) {
  const auto product = [](Shape shape, DType dtype) {
    const Expr x = MakeVar("x", TensorType{std::move(shape), dtype});
    return FunctionOf({x}, CallOp("nn.matmul", {x, x}));
  };
  EXPECT_EQ(Taken(product({4, 4}, DType::kFloat16)), "cublas.matmul");
  EXPECT_THAT(Taken(product({4, 4}, DType::kFloat64)), HasSubstr("float32 and float16 are supported"));
  EXPECT_THAT(Taken(product({4, 4}, DType::kInt32)), HasSubstr("float32 and float16 are supported"));
  EXPECT_THAT(Taken(product({0, 4, 4}, DType::kFloat32)), HasSubstr("no elements"));
}

TEST(CublasRulesTest, ItIsAbsentOnOtherDevicesAndRunsNothingThere) {
  EXPECT_FALSE(Cublas().Probe(Device{}).present);
  EXPECT_NE(Cublas().Probe(Device{}).reason, "");
  const Expr x = Input({4, 4});
  const Expr function = FunctionOf({x}, CallOp("nn.matmul", {x, x}));
  EXPECT_TRUE(Cublas().Variants(*function->As<Function>(), Device{}).empty());
  EXPECT_FALSE(Cublas().Compile(*function->As<Function>(), Device{}, Variant{"heuristic0", {Layout()}, {Layout()}}));
}

}  // namespace
}  // namespace collage
