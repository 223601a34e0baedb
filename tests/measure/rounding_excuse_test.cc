#include "collage/measure/rounding_excuse.h"

#include <gtest/gtest.h>

#include <random>

#include "collage/ir/parse.h"
#include "collage/op/table.h"

namespace collage {
namespace {

/// What is left of the difference of two nearly equal numbers is mostly their rounding. In float64, so that no two runs are alike.
class RoundingExcuseTest : public testing::Test {
 protected:
  RoundingExcuseTest() {
    sample_.inputs = {Numbers({1, 2, 3, 4}), Numbers({1.000001, 2.000001, 3.000001, 4.000001})};
    sample_.expected = Run(sample_.inputs, {}).value();
  }

  static Tensor Numbers(const std::vector<double>& values) { return Tensor::FromVector<double>({{4}, DType::kFloat64}, values); }

  [[nodiscard]] Result<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs, const InterpreterOptions& options) const {
    return InterpretFunction(function_, inputs, options);
  }

  [[nodiscard]] RoundingEffect Effect(uint64_t seed) const {
    return {[this](const std::vector<Tensor>& inputs, const InterpreterOptions& options) { return Run(inputs, options); }, sample_, seed};
  }

  /// What a right program gives.
  [[nodiscard]] std::vector<Tensor> Rounded(uint64_t seed) const {
    std::vector<Tensor> found;
    const auto run = [&](const std::vector<Tensor>& inputs, const InterpreterOptions& options) {
      found = Run(inputs, options).value();
      return Result<std::vector<Tensor>>(found);
    };
    EXPECT_TRUE(RoundingEffect(run, sample_, seed).RunAgain().value());
    return found;
  }

  Expr function_ =
      ParseExpr("fn (%x: Tensor[(4,), float64], %y: Tensor[(4,), float64]) { subtract(exp(%x), exp(%y)) }", Operators()).value().expr;
  ReferenceSample sample_;
};

TEST_F(RoundingExcuseTest, ExcusesRightProgramsButForOneInTwenty) {
  std::mt19937_64 random(1);
  size_t excused = 0;
  for (int i = 0; i < 400; ++i) {
    RoundingEffect effect = Effect(random());
    excused += RoundingExcuse::Find(Rounded(random()), sample_, effect, kTolerance).value().has_value() ? 1 : 0;
  }
  // 380 are to be expected, give or take 4.4.
  EXPECT_GE(excused, 365U);
}

TEST_F(RoundingExcuseTest, DoesNotExcuseWhatNoRoundingExplains) {
  RoundingEffect effect = Effect(1);
  std::vector<Tensor> far = Rounded(2);
  far[0].MutableData<double>()[0] += 1;
  EXPECT_FALSE(RoundingExcuse::Find(far, sample_, effect, kTolerance).value());
  EXPECT_FALSE(effect.RunAgain().value()) << "all runs are over";
}

TEST_F(RoundingExcuseTest, RunsNoMoreOftenThanItTakes) {
  RoundingEffect effect = Effect(1);
  EXPECT_TRUE(RoundingExcuse::Find(sample_.expected, sample_, effect, kTolerance).value());
  EXPECT_EQ(effect.farthest()[0].difference, 0) << "nothing has run";
  std::vector<Tensor> far = Rounded(2);
  far[0].MutableData<double>()[0] += 1;
  EXPECT_FALSE(RoundingExcuse::Find(far, sample_, effect, kTolerance, [] { return true; }).value());
  EXPECT_EQ(effect.farthest()[0].difference, 0) << "it was stopped";
}

}  // namespace
}  // namespace collage
