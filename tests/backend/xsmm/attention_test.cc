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

Expr View(const std::string& op, const Expr& x, const std::string& name, Ints numbers) {
  return CallOp(op, {x}, {{name, std::move(numbers)}});
}
Expr Reshaped(const Expr& x, Ints shape) { return View("reshape", x, "newshape", std::move(shape)); }
Expr Transposed(const Expr& x, Ints axes) { return View("transpose", x, "axes", std::move(axes)); }
Expr Heads(const Expr& x, int64_t heads) {
  const Shape& shape = x->type().AsTensor()->shape;
  return Transposed(Reshaped(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}
Expr PartOf(const Expr& parts, size_t index) { return *MakeTupleGetItem(parts, index); }

TEST(XsmmAttentionTest, OperandsAreReadWhereTheyLie) {
  // Heads of three products.
  const Expr queries = Input({2, 33, 48});
  const Expr keys = Input({2, 70, 48});
  const Expr values = Input({2, 70, 60});
  const std::vector<Expr> apart = {queries, keys, values};
  Check(apart, HeadsSideBySide(Product(Softmax(Scaled(Product(Heads(queries, 3), Heads(keys, 3), true))), Heads(values, 3))));
  const Expr turned = Transposed(Reshaped(keys, {2, 70, 3, 16}), {0, 2, 3, 1});
  Check(apart, Product(Softmax(Product(Heads(queries, 3), turned)), Heads(values, 3)));
  // What queries and keys are scaled by on the way.
  Check(apart, Product(Softmax(Product(Scaled(Heads(queries, 3)), CallOp("divide", {turned, Scalar(2)}))), Heads(values, 3)));
  Check(apart, Product(Softmax(Product(Heads(CallOp("multiply", {Scalar(3), queries}), 3), Heads(keys, 3), true)), Heads(values, 3)));
  // Parts of one product, split before heads are and behind.
  const Expr joined = Input({1, 50, 96});
  const Expr parts = CallOp("split", {joined}, {{"indices_or_sections", Ints{32, 64}}, {"axis", int64_t{2}}});
  const auto part = [&](size_t index) { return Heads(PartOf(parts, index), 2); };
  Check({joined}, HeadsSideBySide(Product(Softmax(Product(part(0), part(1), true)), part(2))));
  const Expr stacked = Transposed(Reshaped(joined, {1, 50, 3, 2, 16}), {2, 0, 3, 1, 4});
  const Expr three = CallOp("split", {stacked}, {{"indices_or_sections", int64_t{3}}, {"axis", int64_t{0}}});
  const auto third = [&](size_t index) { return View("squeeze", PartOf(three, index), "axis", {0}); };
  const Expr turned_third = Transposed(third(1), {0, 1, 3, 2});
  Check({joined}, Product(Softmax(Product(Scaled(third(0)), Scaled(turned_third))), third(2)));
  // Some of the rows, and every other one.
  const auto rows = [](const Expr& x, int64_t begin, int64_t end) {
    return CallOp("strided_slice", {x}, {{"begin", Ints{begin}}, {"end", Ints{end}}, {"axes", Ints{1}}});
  };
  Check(apart, Product(Softmax(Product(rows(queries, 3, 20), rows(keys, 5, 70), true)), rows(values, 0, 65)));
  const Expr every_other =
      CallOp("strided_slice", {keys}, {{"begin", Ints{1}}, {"end", Ints{70}}, {"axes", Ints{1}}, {"strides", Ints{2}}});
  Check(apart, Product(Softmax(Product(queries, every_other, true)), rows(values, 0, 35)));
  // One position, one channel, one head.
  const Expr one = Input({1, 1, 4});
  Check({one}, Product(Softmax(Product(Heads(one, 4), Heads(one, 4), true)), Heads(one, 4)));
  // A mask with dimensions of one element.
  const Expr mask = MakeVar("mask", TensorType{{2, 70}, DType::kBool});
  const Expr spread = Reshaped(mask, {2, 1, 1, 70});
  Check({queries, keys, values, mask},
        Product(Softmax(CallOp("where", {spread, Product(Heads(queries, 3), Heads(keys, 3), true), Scalar(-50)})), Heads(values, 3)));
}

TEST(XsmmAttentionTest, OtherThingsInFrontAreDeclined) {
  const Expr queries = Input({2, 3, 40, 16});
  const Expr keys = Input({2, 3, 50, 16});
  const Expr values = Input({2, 3, 50, 24});
  const Expr turned = Input({2, 3, 16, 40});
  const auto body = [&](const Expr& q, const Expr& k, const Expr& v) { return Product(Softmax(Product(q, k, true)), v); };
  const Expr mask = Input({50, 40});
  const Expr bias = Input({40, 50});
  const Expr channels = Input({16});
  const Expr halves = Input({2, 3, 50, 2, 12});
  const Expr none = Input({2, 3, 0, 16});
  const std::vector<Expr> parameters = {queries, keys, values, turned, mask, bias, channels, halves, none};
  for (const Expr& declined :
       {body(CallOp("nn.relu", {queries}), keys, values), body(queries, CallOp("multiply", {keys, channels}), values),
        body(queries, keys, Scaled(values)), body(Transposed(turned, {0, 1, 3, 2}), keys, values),
        Product(Softmax(CallOp("add", {Product(queries, keys, true), Transposed(mask, {1, 0})})), values),
        Product(Softmax(CallOp("add", {Product(queries, keys, true), Scaled(bias)})), values),
        body(Reshaped(none, {2, 3, 0, 16}), keys, values), body(queries, Reshaped(none, {2, 3, 0, 16}), Reshaped(none, {2, 3, 0, 16})),
        // No view: neither rows nor columns lie side by side.
        body(queries, keys, Reshaped(Transposed(halves, {0, 1, 2, 4, 3}), {2, 3, 50, 24}))}) {
    EXPECT_THAT(VariantsOf(FunctionOf(parameters, declined)), IsEmpty());
  }
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

// The whole of it, with the transpose and without, with views in front and without; no part of it that is no attention.
TEST(XsmmAttentionTest, AModelOffersIt) {
  const auto labels_of = [](const Expr& function) {
    const DataflowGraph graph(function);
    std::vector<std::string> labels;
    for (const PatternRule& rule : Xsmm().Rules().patterns) {
      if (rule.label != "xsmm.attention") continue;
      ForEachMatch(graph, rule, [&](const PatternMatch& match) {
        if (rule.check(match.match).accepted) labels.push_back(LabelOf(rule, graph, match.inside));
      });
    }
    return labels;
  };
  const Expr queries = Input({2, 3, 40, 16});
  const Expr keys = Input({2, 3, 50, 16});
  const Expr values = Input({2, 3, 50, 24});
  const Expr scores = CallOp("add", {Scaled(Product(queries, keys, true)), Masked({50})});
  const Expr whole = CallOp("nn.relu", {HeadsSideBySide(Product(Softmax(scores), values))});
  EXPECT_THAT(labels_of(FunctionOf({queries, keys, values}, whole)),
              ElementsAre("xsmm.attention_multiply_add_softmax_matmul", "xsmm.attention_multiply_add_softmax_matmul_transpose"));
  const Expr joined = Input({1, 50, 96});
  const Expr parts = CallOp("split", {CallOp("nn.relu", {joined})}, {{"indices_or_sections", int64_t{3}}, {"axis", int64_t{2}}});
  const auto part = [&](size_t index) { return Heads(PartOf(parts, index), 2); };
  EXPECT_THAT(labels_of(FunctionOf({joined}, Product(Softmax(Product(part(0), part(1), true)), part(2)))),
              ElementsAre("xsmm.attention_softmax_matmul",
                          "xsmm.attention_reshape_transpose_reshape_transpose_matmul_softmax_reshape_transpose_matmul"));
}

}  // namespace
}  // namespace collage
