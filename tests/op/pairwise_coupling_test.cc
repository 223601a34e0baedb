#include <numeric>

#include "op_testing.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

TEST(PairwiseCouplingTest, OfTwoClassesItIsTheProbabilityOfTheFirst) {
  const std::vector<double> found =
      ApplyAll("pairwise_coupling", {Tensor::FromVector<float>({{2, 1}, DType::kFloat32}, {0.75F, 0.1F})})[0].ToDouble();
  const std::vector<double> expected = {0.75, 0.25, 0.1, 0.9};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 5e-3);
}

TEST(PairwiseCouplingTest, ConsistentPairsGiveBackTheirProbabilities) {
  const std::vector<double> classes = {0.5, 0.2, 0.2, 0.1};
  std::vector<float> pairs;
  for (size_t i = 0; i < classes.size(); ++i) {
    for (size_t j = i + 1; j < classes.size(); ++j) pairs.push_back(static_cast<float>(classes[i] / (classes[i] + classes[j])));
  }
  const std::vector<double> found =
      ApplyAll("pairwise_coupling", {Tensor::FromVector<float>({{1, 6}, DType::kFloat32}, pairs)})[0].ToDouble();
  for (size_t i = 0; i < classes.size(); ++i) EXPECT_NEAR(found[i], classes[i], 5e-3);
  EXPECT_NEAR(std::accumulate(found.begin(), found.end(), 0.0), 1, 1e-6);
}

TEST(PairwiseCouplingTest, RefusesWhatAreNotAllPairs) {
  EXPECT_EQ(Infer("pairwise_coupling", {T({5, 3})}), "Tensor[(5, 3), float32]");
  EXPECT_EQ(Infer("pairwise_coupling", {T({5, 124750})}), "Tensor[(5, 500), float32]");
  for (const int64_t none : {int64_t{0}, int64_t{2}, int64_t{124751}, int64_t{1} << 60})
    EXPECT_THAT(Infer("pairwise_coupling", {T({0, none})}), HasSubstr("expected n * (n - 1) / 2 columns")) << none;
  EXPECT_THAT(Infer("pairwise_coupling", {T({5, 4})}), HasSubstr("pairs has shape (5, 4), expected n * (n - 1) / 2 columns"));
}

}  // namespace
}  // namespace collage
