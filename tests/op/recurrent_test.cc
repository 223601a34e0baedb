#include "collage/op/recurrent.h"

#include <cmath>

#include "op_testing.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSteps = 3;
constexpr int64_t kBatch = 2;
constexpr int64_t kInputs = 2;
constexpr int64_t kHidden = 2;

/// Arguments of a layer with `gates` gates; the last two for a cell only.
std::vector<Tensor> Arguments(int64_t gates, bool has_cell, int64_t directions = 1, const std::vector<int64_t>& lengths = {3, 3}) {
  std::vector<Tensor> arguments{Random(T({kSteps, kBatch, kInputs}), 1),
                                Random(T({directions, gates * kHidden, kInputs}), 2),
                                Random(T({directions, gates * kHidden, kHidden}), 3),
                                Random(T({directions, 2 * gates * kHidden}), 4),
                                Int64s({kBatch}, lengths),
                                Random(T({directions, kBatch, kHidden}), 5)};
  if (has_cell) {
    arguments.push_back(Random(T({directions, kBatch, kHidden}), 6));
    arguments.push_back(Random(T({directions, 3 * kHidden}), 7));
  }
  return arguments;
}

std::string InferLayer(const std::string& op, std::vector<Tensor> arguments, const Attributes& attributes = {}) {
  std::vector<Type> types;
  for (const Tensor& argument : arguments) types.emplace_back(argument.type());
  return Infer(op, types, attributes);
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// W x + R h + both biases of one row.
double Gate(const std::vector<Tensor>& a, int64_t row, int64_t rows, int64_t t, int64_t n, const std::vector<double>& h) {
  double sum = Reader(a[3])({0, row}) + Reader(a[3])({0, rows + row});
  for (int64_t k = 0; k < kInputs; ++k) sum += Reader(a[1])({0, row, k}) * Reader(a[0])({t, n, k});
  for (int64_t k = 0; k < kHidden; ++k) sum += Reader(a[2])({0, row, k}) * h[static_cast<size_t>(k)];
  return sum;
}

TEST(RecurrentTest, InfersShapesAndRefuses) {
  EXPECT_EQ(InferLayer("nn.gru", Arguments(3, false)), "(Tensor[(3, 1, 2, 2), float32], Tensor[(1, 2, 2), float32])");
  EXPECT_EQ(InferLayer("nn.lstm", Arguments(4, true, 2), {{"direction", "bidirectional"}}),
            "(Tensor[(3, 2, 2, 2), float32], Tensor[(2, 2, 2), float32], Tensor[(2, 2, 2), float32])");
  EXPECT_THAT(InferLayer("nn.rnn", Arguments(3, false)), HasSubstr("weight has shape (1, 6, 2), expected (1, 2, 2)"));
  EXPECT_THAT(InferLayer("nn.rnn", Arguments(1, false), {{"direction", "up"}}), HasSubstr("attribute 'direction' is \"up\""));
  EXPECT_THAT(InferLayer("nn.rnn", Arguments(1, false), {{"activations", AttributeValue::List{"sine"}}}), HasSubstr("the name \"sine\""));
  EXPECT_THAT(InferLayer("nn.gru", Arguments(3, false), {{"activations", AttributeValue::List{"tanh"}}}),
              HasSubstr("has 1 names, expected 2"));
}

TEST(RecurrentTest, FunctionsThatHaveAParameterConsumeTheNextNumber) {
  const Attributes attributes{{"activations", AttributeValue::List{"sigmoid", "leakyrelu", "affine", "hardsigmoid", "tanh", "affine"}},
                              {"activation_alpha", AttributeValue::List{0.3, 0.5}},
                              {"activation_beta", AttributeValue::List{0.1}}};
  const std::vector<ActivationChoice> choices = ReadActivationChoices(attributes, {"sigmoid", "tanh", "tanh"}, 2).value();
  std::vector<std::pair<double, double>> parameters;
  for (const ActivationChoice& choice : choices) parameters.emplace_back(choice.alpha, choice.beta);
  EXPECT_EQ(parameters, (std::vector<std::pair<double, double>>{{0, 0}, {0.3, 0}, {0.5, 0.1}, {0.2, 0.5}, {0, 0}, {1, 0}}));
}

TEST(RecurrentTest, ARecurrentLayerStopsAtTheLengthOfASequence) {
  const std::vector<Tensor> a = Arguments(1, false, 1, {2, 3});
  const std::vector<Tensor> result = ApplyAll("nn.rnn", a);
  for (int64_t n = 0; n < kBatch; ++n) {
    std::vector<double> h{Reader(a[5])({0, n, 0}), Reader(a[5])({0, n, 1})};
    for (int64_t t = 0; t < kSteps; ++t) {
      const bool counts = t < (n == 0 ? 2 : 3);
      if (counts) h = {std::tanh(Gate(a, 0, kHidden, t, n, h)), std::tanh(Gate(a, 1, kHidden, t, n, h))};
      for (int64_t i = 0; i < kHidden; ++i) {
        EXPECT_NEAR(Reader(result[0])({t, 0, n, i}), counts ? h[static_cast<size_t>(i)] : 0.0, 1e-6);
      }
    }
    EXPECT_NEAR(Reader(result[1])({0, n, 1}), h[1], 1e-6);
  }
}

TEST(RecurrentTest, AReversedLayerIsALayerOfReversedSequences) {
  std::vector<Tensor> a = Arguments(3, false);
  const std::vector<Tensor> backwards = ApplyAll("nn.gru", a, {{"direction", "reverse"}});
  a[0] = Apply("strided_slice", {a[0]}, {{"begin", Ints{2}}, {"end", Ints{-4}}, {"strides", Ints{-1}}, {"axes", Ints{0}}});
  const std::vector<Tensor> forwards = ApplyAll("nn.gru", a);
  EXPECT_TRUE(BitwiseEqual(backwards[1], forwards[1]));
  EXPECT_NEAR(Reader(backwards[0])({0, 0, 1, 1}), Reader(forwards[0])({2, 0, 1, 1}), 0);
}

TEST(RecurrentTest, AGatedUnitMixesStateAndCandidate) {
  const std::vector<Tensor> a = Arguments(3, false, 1, {1, 1});
  const std::vector<double> h{Reader(a[5])({0, 0, 0}), Reader(a[5])({0, 0, 1})};
  std::vector<double> kept;
  for (int64_t i = 0; i < kHidden; ++i) kept.push_back(h[static_cast<size_t>(i)] * Sigmoid(Gate(a, kHidden + i, 3 * kHidden, 0, 0, h)));
  const double candidate = std::tanh(Gate(a, 2 * kHidden, 3 * kHidden, 0, 0, kept));
  const double update = Sigmoid(Gate(a, 0, 3 * kHidden, 0, 0, h));
  EXPECT_NEAR(Reader(ApplyAll("nn.gru", a)[1])({0, 0, 0}), (1 - update) * candidate + update * h[0], 1e-6);
}

TEST(RecurrentTest, ALongShortTermMemoryHasPeepholes) {
  const std::vector<Tensor> a = Arguments(4, true, 1, {1, 1});
  const std::vector<double> h{Reader(a[5])({0, 0, 0}), Reader(a[5])({0, 0, 1})};
  const double c = Reader(a[6])({0, 0, 0});
  const Reader p(a[7]);
  const double input = Sigmoid(Gate(a, 0, 4 * kHidden, 0, 0, h) + p({0, 0}) * c);
  const double forget = Sigmoid(Gate(a, 2 * kHidden, 4 * kHidden, 0, 0, h) + p({0, 2 * kHidden}) * c);
  const double cell = forget * c + input * std::tanh(Gate(a, 3 * kHidden, 4 * kHidden, 0, 0, h));
  const double output = Sigmoid(Gate(a, kHidden, 4 * kHidden, 0, 0, h) + p({0, kHidden}) * cell);
  const std::vector<Tensor> result = ApplyAll("nn.lstm", a);
  EXPECT_NEAR(Reader(result[2])({0, 0, 0}), cell, 1e-6);
  EXPECT_NEAR(Reader(result[1])({0, 0, 0}), output * std::tanh(cell), 1e-6);
}

TEST(RecurrentTest, QuantisedStatesAreThoseOfTheWholeBatch) {
  // With one step there is only the initial state; where that is on the grid of 255 steps from -1 to 1, nothing is lost.
  std::vector<Tensor> a = Arguments(4, true, 1, {1, 1});
  a[5] = Tensor::FromVector<float>({{1, kBatch, kHidden}, DType::kFloat32}, {0, 127.0F / 255, 1, 51.0F / 255});
  const std::vector<double> exact = ApplyAll("nn.lstm", a)[0].ToDouble();
  const std::vector<double> same = ApplyAll("qnn.lstm", a)[0].ToDouble();
  for (size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(same[i], exact[i], 1e-6);
  // Between two neighbours the nearest is read.
  a[5] = Tensor::FromVector<float>({{1, kBatch, kHidden}, DType::kFloat32}, {0, 127.4F / 255, 1, 50.6F / 255});
  const std::vector<double> rounded = ApplyAll("qnn.lstm", a)[0].ToDouble();
  for (size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(rounded[i], exact[i], 1e-6);
}

}  // namespace
}  // namespace collage
