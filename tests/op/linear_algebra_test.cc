#include <cmath>

#include "op_testing.h"

namespace collage {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LinearAlgebraTest, DeterminantOfEachMatrix) {
  EXPECT_THAT(Apply("linalg.det", {Floats({2, 2, 2}, {0, 1, 1, 0, 2, 3, 4, 5})}).ToDouble(), ElementsAre(-1, -2));
  EXPECT_THAT(Apply("linalg.det", {Floats({2, 0, 0}, {})}).ToDouble(), ElementsAre(1, 1)) << "of no numbers the empty product";
  EXPECT_THAT(Infer("linalg.det", {T({2, 3})}), HasSubstr("expected square matrices"));
}

TEST(LinearAlgebraTest, InverseOfEachMatrix) {
  EXPECT_THAT(Apply("linalg.inv", {Floats({2, 2, 2}, {0, 2, 4, 0, 2, 3, 4, 5})}).ToDouble(),
              ElementsAre(0, 0.25, 0.5, 0, -2.5, 1.5, 2, -1));
  EXPECT_THAT(Infer("linalg.inv", {T({2, 3})}), HasSubstr("expected square matrices"));
  EXPECT_EQ(Infer("linalg.inv", {T({7, 3, 3})}), "Tensor[(7, 3, 3), float32]");
  for (const double number : Apply("linalg.inv", {Floats({2, 2}, {1, 2, 2, 4})}).ToDouble()) EXPECT_FALSE(std::isfinite(number));
}

TEST(LinearAlgebraTest, AMatrixTimesItsInverseIsTheUnitMatrix) {
  constexpr int64_t kRows = 100;
  const Tensor matrix = Random(T({kRows, kRows}), 1);
  const std::vector<double> product = Apply("nn.matmul", {matrix, Apply("linalg.inv", {matrix})}).ToDouble();
  for (int64_t i = 0; i < kRows * kRows; ++i) EXPECT_NEAR(product[static_cast<size_t>(i)], i % (kRows + 1) == 0 ? 1 : 0, 1e-3) << i;
}

}  // namespace
}  // namespace collage
