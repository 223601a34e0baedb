#include <fmt/format.h>

#include "collage/form/rules.h"
#include "tests/form/form_testing.h"

namespace collage {
namespace {

/// A function whose weights all are `value`, and its zero point 7.
Expr FunctionWith(const std::string& text, int32_t value) {
  ParseOptions options;
  options.missing_constant = [&](size_t index, const TensorType& type) -> Result<Tensor> {
    return Tensor::FromVector(type, std::vector<int32_t>(static_cast<size_t>(type.ElementCount()), index == 0 ? value : 7));
  };
  Result<ParsedExpr> parsed = ParseExpr(text, Operators(), options);
  EXPECT_TRUE(parsed.has_value()) << (parsed ? "" : parsed.error().message) << text;
  return parsed->expr;
}

std::string Weight(const std::string& shape) { return fmt::format("meta[relay.Constant][0] /*Tensor[({}), int32]*/", shape); }

std::string Numbers(bool has_zero_point) {
  const std::string cast = "cast(%x, dtype=\"int32\")";
  return has_zero_point ? "subtract(" + cast + ", meta[relay.Constant][1] /*Tensor[(), int32]*/)" : cast;
}

/// Of the largest weights with which all sums are exact; one more, and there is no form.
void ExpectExactUpTo(const std::string& text, int64_t terms) {
  const auto largest = static_cast<int32_t>((int64_t{1} << 24) / (255 * terms));
  for (const int32_t value : {largest, -largest, 1, 0}) {
    const Expr function = FunctionWith(text, value);
    const FormedGraph formed = FormsIn(function, {IntegerProductForm()});
    ASSERT_EQ(formed.forms.size(), 1U) << text;
    const std::vector<Tensor> actual = ResultsOf(WithForm(formed, 0));
    EXPECT_TRUE(BitwiseEqual(actual[0], ResultsOf(function)[0])) << text;
  }
  EXPECT_TRUE(FormsIn(FunctionWith(text, largest + 1), {IntegerProductForm()}).forms.empty()) << text;
}

TEST(IntegerProductForm, ComputesTheSameBits) {
  for (const bool has_zero_point : {false, true}) {
    for (const char* type : {"uint8", "int8"}) {
      const auto of = [&](const std::string& data, const std::string& product) {
        return fmt::format("fn (%x: Tensor[({}), {}]) {{ {} }}", data, type, product);
      };
      const std::string x = Numbers(has_zero_point);
      ExpectExactUpTo(of("2, 3, 40", "nn.matmul(" + x + ", " + Weight("40, 5") + ")"), 40);
      ExpectExactUpTo(of("3, 40", "nn.matmul(" + x + ", " + Weight("5, 40") + ", transpose_b=True)"), 40);
      ExpectExactUpTo(of("3, 40", "nn.dense(" + x + ", " + Weight("5, 40") + ")"), 40);
      ExpectExactUpTo(of("1, 4, 5, 6", "nn.conv2d(" + x + ", " + Weight("6, 2, 3, 3") + ", padding=[1, 0], groups=2)"), 18);
    }
  }
}

TEST(IntegerProductForm, IsNoneOfOtherTypes) {
  ExpectNoForm("fn (%x: Tensor[(3, 4), int16]) { nn.matmul(cast(%x, dtype=\"int32\"), " + Weight("4, 5") + ") }", IntegerProductForm());
  ExpectNoForm("fn (%x: Tensor[(2, 3, 4), uint8]) { nn.matmul(cast(%x, dtype=\"int32\"), " + Weight("2, 4, 5") + ") }",
               IntegerProductForm());
}

}  // namespace
}  // namespace collage
