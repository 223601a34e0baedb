#include "collage/ir/structural.h"

#include <gtest/gtest.h>

#include "tests/ir/parsed.h"
#include "tests/ir/programs.h"
#include "tests/ir/small_table.h"

namespace collage {
namespace {

const char* const kAdd = "fn (%x: float32, %y: float32) -> float32 {\n  add(%x, %y)\n}\n";

void ExpectEqual(const Expr& a, const Expr& b, const StructuralOptions& options = {}) {
  EXPECT_TRUE(StructuralEqual(a, b, options));
  EXPECT_EQ(StructuralHash(a, options), StructuralHash(b, options));
}

void ExpectDifferent(const Expr& a, const Expr& b, const StructuralOptions& options = {}) {
  EXPECT_FALSE(StructuralEqual(a, b, options));
  EXPECT_FALSE(StructuralEqual(b, a, options));
  EXPECT_NE(StructuralHash(a, options), StructuralHash(b, options));
}

TEST(Structural, NamesOfVariablesDoNotCount) {
  ExpectEqual(ParsedMain(kAdd), ParsedMain("fn (%a: float32, %x: float32) { add(%a, %x) }"));
  ExpectDifferent(ParsedMain(kAdd), ParsedMain("fn (%x: float32, %y: float32) { add(%y, %x) }"));
  ExpectDifferent(ParsedMain(kAdd), ParsedMain("fn (%x: float32, %y: float32) { add(%x, %x) }"));
  ExpectEqual(ParsedMain("fn (%x: float32) { let %y = exp(%x); exp(%y) }"), ParsedMain("fn (%y: float32) { let %z = exp(%y); exp(%z) }"));
}

TEST(Structural, ContentCounts) {
  const std::vector<std::string> programs = {
      kAdd,
      "fn (%x: float32, %y: float32) { subtract(%x, %y) }",
      "fn (%x: float64, %y: float64) { add(%x, %y) }",
      "fn (%x: Tensor[(1,), float32], %y: Tensor[(1,), float32]) { add(%x, %y) }",
      "fn (%x: float32, %y: float32, Primitive=1) { add(%x, %y) }",
      "fn (%x: float32, %y: float32, Primitive=0) { add(%x, %y) }",
      "fn (%x: float32, %y: float32) { (%x, %y) }",
      "fn (%x: float32, %y: float32) { (%x, %y).0 }",
      "fn (%x: float32, %y: float32) { (%x, %y).1 }",
      "fn (%x: float32, %y: float32) { let %z = add(%x, %y); %z }",
      "fn (%x: float32, %y: float32) { if (True) { %x } else { %y } }",
      "fn (%x: float32, %y: float32) { if (True) { %y } else { %x } }",
      "fn (%x: float32, %y: float32) { if (False) { %y } else { %x } }",
      "fn (%x: float32, %y: float32) { annotate(%x, int=1) }",
      "fn (%x: float32, %y: float32) { annotate(%x, int=2) }",
      "fn (%x: float32, %y: float32) { annotate(%x, float=1f) }",
      "fn (%x: float32, %y: float32) { add(%x, 2f) }",
      "fn (%x: float32, %y: float32) { add(%x, 3f) }",
  };
  for (size_t i = 0; i < programs.size(); ++i) {
    for (size_t j = 0; j < programs.size(); ++j) {
      if (i == j) {
        ExpectEqual(ParsedMain(programs[i]), ParsedMain(programs[j]));
      } else {
        SCOPED_TRACE(programs[i] + "\n" + programs[j]);
        ExpectDifferent(ParsedMain(programs[i]), ParsedMain(programs[j]));
      }
    }
  }
}

TEST(Structural, OrderOfAttributesDoesNotCount) {
  ExpectEqual(ParsedMain("fn (%x: float32, Primitive=1, Compiler=\"a\") { annotate(%x, int=1, flag=True) }"),
              ParsedMain("fn (%x: float32, Compiler=\"a\", Primitive=1) { annotate(%x, flag=True, int=1) }"));
}

TEST(Structural, SharingCountsExceptOfConstants) {
  ExpectDifferent(ParsedMain("fn (%x: float32) { %0 = exp(%x); add(%0, %0) }"), ParsedMain("fn (%x: float32) { add(exp(%x), exp(%x)) }"));
  ExpectEqual(ParsedMain("fn (%x: float32) { add(add(%x, 1f), 1f) }"), ParsedMain("fn (%x: float32) { %0 = 1f; add(add(%x, %0), %0) }"));
}

TEST(Structural, ConstantsByValueOrByType) {
  const Expr a = ParsedMain(kMnist, 1);
  const Expr b = ParsedMain(kMnist, 2);
  ExpectDifferent(a, b);
  ExpectEqual(a, ParsedMain(kMnist, 1));
  ExpectEqual(a, b, ForPricing());
  // The value of a single element always counts.
  ExpectDifferent(ParsedMain("fn (%x: float32) { add(%x, 1f) }"), ParsedMain("fn (%x: float32) { add(%x, 2f) }"), ForPricing());
}

TEST(Structural, AttributesOfFunctionsCanBeLeftOut) {
  const Expr a = ParsedMain("fn (%x: float32, Primitive=1, global_symbol=\"a\") { exp(%x) }");
  const Expr b = ParsedMain("fn (%x: float32, Primitive=1, global_symbol=\"b\") { exp(%x) }");
  ExpectDifferent(a, b);
  ExpectEqual(a, b, ForPricing());
  ExpectEqual(a, ParsedMain("fn (%x: float32, Primitive=1) { exp(%x) }"), ForPricing());
}

TEST(Structural, FreeVariablesAreEqualToThemselves) {
  const Expr x = MakeVar("x", TensorType{});
  const Expr y = MakeVar("x", TensorType{});
  EXPECT_TRUE(StructuralEqual(x, x));
  EXPECT_FALSE(StructuralEqual(x, y));
  EXPECT_EQ(StructuralHash(x), StructuralHash(y));
  const Expr one = MakeConstant(Tensor::Scalar(1, DType::kInt32));
  EXPECT_TRUE(StructuralEqual(one, MakeConstant(Tensor::Scalar(1, DType::kInt32))));
  EXPECT_FALSE(StructuralEqual(one, MakeConstant(Tensor::Scalar(2, DType::kInt32))));
}

TEST(Structural, ModulesCompareByName) {
  const std::string f = "def @f(%x: float32) -> float32 { exp(%x) }\n";
  const std::string main = "def @main(%x: float32) -> float32 { @f(%x) }\n";
  const IRModule a = Parsed(f + main).module;
  EXPECT_TRUE(StructuralEqual(a, Parsed(main + f).module));
  EXPECT_EQ(StructuralHash(a), StructuralHash(Parsed(main + f).module));
  EXPECT_FALSE(StructuralEqual(a, Parsed(f + "def @main(%x: float32) -> float32 { @f(@f(%x)) }").module));
}

// Prices on disk are keyed by these: a change here makes old caches useless and must be deliberate.
TEST(Structural, HashesStayTheSame) {
  EXPECT_EQ(StructuralHash(ParsedMain(kAdd)), 1705660789194144270u);
  EXPECT_EQ(StructuralHash(ParsedMain(kMnist), ForPricing()), 3585306773962005292u);
}

// Verdicts are keyed by it: other weights are another program, however large they are and wherever they differ.
TEST(Structural, ContentHashSeesEveryByteOfTheWeights) {
  for (const int64_t elements : {1, 7, 1023, 1024, 50000}) {
    const TensorType type{{elements}, DType::kFloat32};
    const auto hash = [&](int64_t changed, const char* symbol) {
      Tensor weights(type);
      FillRandom(weights, 1);
      if (changed >= 0) weights.MutableData<float>()[changed] *= 1.0000002f;
      const std::string text = "fn (%x: float32, global_symbol=\"" + std::string(symbol) + "\") { add(%x, meta[relay.Constant][0]) }";
      return ContentHash(ParseExpr(text, SmallTable(), {.constants = {weights}}).value().expr);
    };
    const uint64_t same = hash(-1, "a");
    EXPECT_EQ(hash(-1, "a"), same);
    EXPECT_EQ(hash(-1, "b"), same);
    for (const int64_t changed : {int64_t{0}, elements / 2, elements - 1})
      EXPECT_NE(hash(changed, "a"), same) << changed << " of " << elements;
  }
}

TEST(Structural, TakesHundredThousandOperators) {
  for (bool lets : {false, true}) {
    const Expr a = ParsedMain(ChainText(100'000, lets));
    const Expr b = ParsedMain(ChainText(100'000, lets));
    ExpectEqual(a, b);
    ExpectDifferent(a, ParsedMain(ChainText(100'001, lets)));
  }
}

}  // namespace
}  // namespace collage
