#include <gmock/gmock.h>

#include <limits>

#include "collage/backend/tuning.h"
#include "collage/dataflow/dataflow_graph.h"
#include "collage/pattern/fusion.h"
#include "tests/backend/kernel_harness.h"

namespace collage {
namespace {

using namespace testing_backend;  // NOLINT(google-build-using-namespace)
using testing::ElementsAre;
using testing::IsEmpty;
using Ints = std::vector<int64_t>;

const Backend& Xsmm() {
  static const Backend& backend = BackendNamed("xsmm");
  return backend;
}

std::vector<Variant> VariantsOf(const Expr& function) { return Xsmm().Variants(*function->As<Function>(), Cpu(2)); }

Expr Product(const Expr& a, const Expr& b, bool transposed = false) { return CallOp("nn.matmul", {a, b}, {{"transpose_b", transposed}}); }
Expr Softmax(const Expr& x) { return CallOp("nn.softmax", {x}, {{"axis", -1}}); }
Expr Scaled(const Expr& x) { return CallOp("multiply", {x, Scalar(0.3)}); }
Expr HeadsSideBySide(const Expr& x) { return CallOp("transpose", {x}, {{"axes", Ints{0, 2, 1, 3}}}); }
Expr MaskOf(Shape shape) { return MakeVar("mask", TensorType{std::move(shape), DType::kBool}); }

/// Minus infinity for some of the keys of each query, but the first.
Expr Masked(const Shape& shape) {
  Tensor mask(TensorType{shape});
  float* numbers = mask.MutableData<float>();
  for (int64_t i = 0; i < ElementCount(shape); ++i)
    numbers[i] = i % shape.back() > 0 && i * 7 % 5 < 2 ? -std::numeric_limits<float>::infinity() : 0.0F;
  return MakeConstant(mask);
}

void Check(const std::vector<Expr>& parameters, const Expr& body) {
  EXPECT_THAT(CheckAllVariants(Xsmm(), FunctionOf(parameters, body)), ElementsAre("attention"));
  CheckAllVariants(Xsmm(), FunctionOf(parameters, body), 1);
}

TEST(XsmmAttentionTest, OfAnyNumberOfQueriesKeysAndChannels) {
  struct Case {
    Shape batches;
    int64_t queries, keys, depth, channels;
  };
  for (const Case& c : std::vector<Case>{{{}, 1, 1, 1, 1},
                                         {{}, 7, 3, 5, 2},
                                         {{3}, 50, 50, 64, 64},
                                         {{2, 4}, 33, 200, 20, 70},
                                         {{1, 12}, 197, 197, 64, 64},
                                         {{1, 2}, 1, 300, 64, 64},
                                         {{2, 1, 3}, 65, 17, 100, 130}}) {
    const auto matrices = [&](int64_t rows, int64_t columns) {
      Shape shape = c.batches;
      shape.insert(shape.end(), {rows, columns});
      return Input(shape);
    };
    SCOPED_TRACE(ToString(c.batches) + ", " + std::to_string(c.queries) + " queries, " + std::to_string(c.keys) + " keys");
    const Expr queries = matrices(c.queries, c.depth);
    const Expr values = matrices(c.keys, c.channels);
    const Expr turned = matrices(c.depth, c.keys);
    const Expr keys = matrices(c.keys, c.depth);
    Check({queries, turned, values}, Product(Softmax(Scaled(Product(queries, turned))), values));
    Check({queries, keys, values}, Product(Softmax(Product(queries, keys, true)), values));
    const Expr turned_values = matrices(c.channels, c.keys);
    Check({queries, keys, turned_values}, Product(Softmax(Product(queries, keys, true)), turned_values, true));
  }
}

TEST(XsmmAttentionTest, BatchesOfKeysAndValuesAreBroadcast) {
  const Expr queries = Input({2, 6, 40, 16});
  const Expr keys = Input({2, 1, 30, 16});
  const Expr values = Input({1, 30, 24});
  Check({queries, keys, values}, Product(Softmax(Product(queries, keys, true)), values));
  const Expr few = Input({5, 16});
  const Expr many_keys = Input({3, 30, 16});
  const Expr many_values = Input({3, 30, 8});
  Check({few, many_keys, many_values}, Product(Softmax(Product(few, many_keys, true)), many_values));
  const Expr flat = Input({3, 20, 16});
  const Expr flat_keys = Input({3, 30, 16});
  const Expr flat_values = Input({3, 8, 30});
  Check({flat, flat_keys, flat_values}, CallOp("nn.batch_matmul", {Softmax(CallOp("nn.batch_matmul", {flat, flat_keys})), flat_values}));
}

TEST(XsmmAttentionTest, ScoresAreScaledShiftedAndMasked) {
  const Expr queries = Input({2, 3, 40, 16});
  const Expr keys = Input({2, 3, 50, 16});
  const Expr values = Input({2, 3, 50, 24});
  const Expr scores = Product(queries, keys, true);
  const std::vector<Expr> parameters = {queries, keys, values};
  for (const Expr& changed :
       {CallOp("divide", {scores, Scalar(3)}), CallOp("add", {Scaled(scores), Scalar(2)}), CallOp("subtract", {Scaled(scores), Scalar(2)}),
        CallOp("add", {Scaled(scores), Masked({50})}), CallOp("add", {Masked({2, 1, 1, 50}), Scaled(scores)}),
        CallOp("add", {CallOp("add", {scores, Masked({40, 50})}), RandomConstant({3, 40, 1}, 3)}),
        Scaled(CallOp("add", {scores, RandomConstant({2, 3, 40, 50}, 3)}))})
    Check(parameters, Product(Softmax(changed), values));
  for (const Shape& shape : {Shape{40, 50}, {2, 1, 40, 50}, {2, 1, 1, 50}, {3, 40, 1}, {1}}) {
    const Expr mask = MaskOf(shape);
    SCOPED_TRACE(ToString(shape));
    std::vector<Expr> with_mask = parameters;
    with_mask.push_back(mask);
    Check(with_mask, Product(Softmax(CallOp("where", {mask, Scaled(scores), Scalar(-100)})), values));
    Check(with_mask, Product(Softmax(CallOp("where", {mask, Scalar(-100), scores})), values));
  }
  const Expr bias = Input({3, 40, 50});
  Check({queries, keys, values, bias}, Product(Softmax(CallOp("add", {Scaled(scores), bias})), values));
}

TEST(XsmmAttentionTest, HeadsOfTheResultLieSideBySide) {
  const Expr queries = Input({2, 3, 40, 16});
  const Expr keys = Input({2, 3, 50, 16});
  const Expr values = Input({2, 3, 50, 24});
  Check({queries, keys, values}, HeadsSideBySide(Product(Softmax(Product(queries, keys, true)), values)));
  const Expr flat_queries = Input({3, 40, 16});
  const Expr flat_keys = Input({3, 16, 50});
  const Expr flat_values = Input({3, 50, 24});
  Check({flat_queries, flat_keys, flat_values},
        CallOp("transpose", {Product(Softmax(Product(flat_queries, flat_keys)), flat_values)}, {{"axes", Ints{1, 0, 2}}}));
}

TEST(XsmmAttentionTest, EveryNumberOfRowsComputesTheSame) {
  const Expr queries = Input({2, 100, 32});
  const Expr keys = Input({2, 110, 32});
  const Expr values = Input({2, 110, 40});
  const Expr function = FunctionOf({queries, keys, values}, Product(Softmax(Product(queries, keys, true)), values));
  const std::vector<Tensor> inputs = RandomInputs(function);
  const Tensor expected = Reference(function, inputs);
  const Variant variant = VariantsOf(function).at(0);
  const std::vector<TuningParameter> parameters = Xsmm().Tuning(*function->As<Function>(), Cpu(2), variant);
  ASSERT_EQ(parameters.size(), 1U);
  for (size_t value = 0; value < parameters[0].values.size(); ++value) {
    const Variant tuned = TunedVariant(variant, parameters, {value});
    SCOPED_TRACE(tuned.name);
    EXPECT_EQ(Objection(Compare(Compiled(Xsmm(), function, tuned, 2)(inputs), expected)), "");
  }
}

TEST(XsmmAttentionTest, OtherFunctionsAreDeclined) {
  const Expr queries = Input({3, 40, 16});
  const Expr keys = Input({3, 50, 16});
  const Expr values = Input({3, 50, 40});
  const Expr scores = Product(queries, keys, true);
  const Expr across = CallOp("nn.softmax", {scores}, {{"axis", 1}});
  const Expr several = Input({2, 3, 50, 24});
  for (const Expr& body : {Product(across, values), Product(Softmax(CallOp("exp", {scores})), values), Product(Softmax(scores), several),
                           Product(Softmax(CallOp("subtract", {Scalar(1), scores})), values),
                           Product(Softmax(CallOp("multiply", {scores, Masked({50})})), values),
                           CallOp("transpose", {Product(Softmax(scores), values)}, {{"axes", Ints{0, 2, 1}}}),
                           CallOp("nn.relu", {Product(Softmax(scores), values)}),
                           // What lies between is read twice.
                           Product(Softmax(CallOp("add", {Scaled(scores), scores})), values)})
    EXPECT_THAT(VariantsOf(FunctionOf({queries, keys, values, several}, body)), IsEmpty());
  const Expr square = Product(queries, queries, true);
  EXPECT_THAT(VariantsOf(FunctionOf({queries}, Product(Softmax(square), square))), IsEmpty());
  EXPECT_THAT(VariantsOf(FunctionOf({queries}, Product(Softmax(square), queries))), testing::SizeIs(1));
}

// The whole of it, with the transpose and without; no part of it that is no attention.
TEST(XsmmAttentionTest, AModelOffersIt) {
  const Expr queries = Input({2, 3, 40, 16});
  const Expr keys = Input({2, 3, 50, 16});
  const Expr values = Input({2, 3, 50, 24});
  const Expr scores = CallOp("add", {Scaled(Product(queries, keys, true)), Masked({50})});
  const Expr function = FunctionOf({queries, keys, values}, CallOp("nn.relu", {HeadsSideBySide(Product(Softmax(scores), values))}));
  const DataflowGraph graph(function);
  std::vector<std::string> labels;
  for (const PatternRule& rule : Xsmm().Rules().patterns) {
    if (rule.label != "xsmm.attention") continue;
    ForEachMatch(graph, rule, [&](const PatternMatch& match) {
      if (rule.check(match.match).accepted) labels.push_back(LabelOf(rule, graph, match.inside));
    });
  }
  EXPECT_THAT(labels, ElementsAre("xsmm.attention_multiply_add_softmax_matmul", "xsmm.attention_multiply_add_softmax_matmul_transpose"));
}

}  // namespace
}  // namespace collage
