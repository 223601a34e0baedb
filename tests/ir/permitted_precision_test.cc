#include "collage/ir/permitted_precision.h"

#include <gtest/gtest.h>

#include "collage/ir/print.h"
#include "collage/ir/structural.h"
#include "tests/ir/parsed.h"

namespace collage {
namespace {

constexpr const char* kText = "fn (%x: Tensor[(2, 3), float32], Primitive=1) { nn.relu(%x) }";

TEST(PermittedPrecisionTest, IsAnAttributeThatTextKeeps) {
  const Expr function = ParsedMain(kText);
  EXPECT_FALSE(PermittedPrecision(*function->As<Function>()));
  const Precision precision{DType::kBFloat16, 0.02};
  const Expr permitted = WithPrecision(function, precision);
  EXPECT_EQ(PermittedPrecision(*permitted->As<Function>()), precision);
  const Expr read = ParsedMain(PrintExpr(permitted).text);
  EXPECT_EQ(PermittedPrecision(*read->As<Function>()), precision);
  EXPECT_EQ(permitted->As<Function>()->attributes.Int("Primitive", 0).value(), 1);
}

TEST(PermittedPrecisionTest, OneTypeIsPermittedAndNoOther) {
  const Expr function = ParsedMain(kText);
  for (const DType stored : {DType::kBFloat16, DType::kInt8}) {
    EXPECT_FALSE(Permits(*function->As<Function>(), stored));
    const Expr permitted = WithPrecision(function, {stored, 0.02});
    for (const DType other : {DType::kBFloat16, DType::kInt8}) EXPECT_EQ(Permits(*permitted->As<Function>(), other), other == stored);
  }
}

TEST(PermittedPrecisionTest, IsPartOfWhatKeysPrices) {
  const Expr function = ParsedMain(kText);
  const auto hash = [&](double tolerance) { return StructuralHash(WithPrecision(function, {DType::kBFloat16, tolerance}), ForPricing()); };
  EXPECT_NE(hash(0.02), StructuralHash(function, ForPricing()));
  EXPECT_NE(hash(0.02), hash(0.03));
  EXPECT_EQ(hash(0.02), hash(0.02));
  EXPECT_NE(hash(0.02), StructuralHash(WithPrecision(function, {DType::kInt8, 0.02}), ForPricing()));
}

TEST(PermittedPrecisionTest, WhatIsNoPrecisionPermitsNothing) {
  for (const char* attribute : {R"(Precision="fp8")", "Precision=3", R"(Precision="bf16=2")"}) {
    const Expr function = ParsedMain(std::string("fn (%x: Tensor[(2), float32], ") + attribute + ") { nn.relu(%x) }");
    EXPECT_FALSE(PermittedPrecision(*function->As<Function>())) << attribute;
  }
}

}  // namespace
}  // namespace collage
