#include "collage/transform/separate_dequantize.h"

#include <gtest/gtest.h>

#include "tests/transform/pass_testing.h"

namespace collage {
namespace {

std::string Separated(const std::string& body) {
  return BodyAfter(SeparateDequantize, "fn (%y: Tensor[(4), float32]) { let %x = cast(%y, dtype=\"int8\"); " + body + " }");
}

const std::string kBytes = "let %x = cast(%y, dtype=\"int8\");\n";

TEST(SeparateDequantize, EachUserHasItsOwn) {
  EXPECT_EQ(
      Separated("%0 = qnn.dequantize(%x, 0.5f, 3i8); (nn.relu(%0), tanh(%0))"),
      kBytes + "%0 = qnn.dequantize(%x, 0.5f, 3i8);\n%1 = nn.relu(%0);\n%2 = qnn.dequantize(%x, 0.5f, 3i8);\n%3 = tanh(%2);\n(%1, %3)\n");
}

TEST(SeparateDequantize, IntegersLessTheirZeroPointToo) {
  EXPECT_EQ(Separated("%0 = cast(%x, dtype=\"int32\"); %1 = subtract(%0, 3); (abs(%1), negative(%1))"),
            kBytes +
                "%0 = cast(%x, dtype=\"int32\");\n%1 = subtract(%0, 3);\n%2 = abs(%1);\n%3 = cast(%x, dtype=\"int32\");\n"
                "%4 = subtract(%3, 3);\n%5 = negative(%4);\n(%2, %5)\n");
}

TEST(SeparateDequantize, WhatHasOneUserOrMakesNoNumbersStays) {
  for (const char* body : {"%0 = qnn.dequantize(%x, 0.5f, 3i8);\nnn.relu(%0)\n", "%0 = abs(%x);\n%1 = negative(%0);\n(%0, %1)\n"})
    EXPECT_EQ(Separated(body), kBytes + body);
}

}  // namespace
}  // namespace collage
