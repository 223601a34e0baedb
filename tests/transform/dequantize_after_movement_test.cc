#include "collage/transform/dequantize_after_movement.h"

#include <gtest/gtest.h>

#include "tests/transform/pass_testing.h"

namespace collage {
namespace {

const std::string kBytes = "let %x = cast(%y, dtype=\"int8\");\n";

std::string Moved(const std::string& body) {
  return BodyAfter(DequantizeAfterMovement, "fn (%y: Tensor[(2, 3, 4), float32]) { " + kBytes + body + " }");
}

TEST(DequantizeAfterMovement, BytesAreMoved) {
  EXPECT_EQ(Moved("transpose(qnn.dequantize(%x, 0.5f, 3i8), axes=[2, 0, 1])"),
            kBytes + "%0 = transpose(%x, axes=[2, 0, 1]);\nqnn.dequantize(%0, 0.5f, 3i8)\n");
  EXPECT_EQ(Moved("reshape(qnn.dequantize(%x, 0.5f, 3i8), newshape=[6, 4])"),
            kBytes + "%0 = reshape(%x, newshape=[6, 4]);\nqnn.dequantize(%0, 0.5f, 3i8)\n");
  EXPECT_EQ(Moved("strided_slice(qnn.dequantize(%x, 0.5f, 3i8), begin=[1], end=[3], axes=[2])"),
            kBytes + "%0 = strided_slice(%x, begin=[1], end=[3], axes=[2]);\nqnn.dequantize(%0, 0.5f, 3i8)\n");
}

TEST(DequantizeAfterMovement, AllThatMovesOneAfterTheOther) {
  EXPECT_EQ(Moved("transpose(expand_dims(reshape(qnn.dequantize(%x, 0.5f, 3i8), newshape=[6, 4]), axis=0), axes=[2, 1, 0])"),
            kBytes +
                "%0 = reshape(%x, newshape=[6, 4]);\n%1 = expand_dims(%0, axis=0);\n%2 = transpose(%1, axes=[2, 1, 0]);\n"
                "qnn.dequantize(%2, 0.5f, 3i8)\n");
}

TEST(DequantizeAfterMovement, OtherUsersKeepTheirs) {
  EXPECT_EQ(
      Moved("%0 = qnn.dequantize(%x, 0.5f, 3i8); (tanh(%0), transpose(%0))"),
      kBytes + "%0 = qnn.dequantize(%x, 0.5f, 3i8);\n%1 = tanh(%0);\n%2 = transpose(%x);\n%3 = qnn.dequantize(%2, 0.5f, 3i8);\n(%1, %3)\n");
}

TEST(DequantizeAfterMovement, OneScaleMayBeComputed) {
  EXPECT_EQ(Moved("transpose(qnn.dequantize(%x, max(%y), 3i8))"),
            kBytes + "%0 = transpose(%x);\n%1 = max(%y);\nqnn.dequantize(%0, %1, 3i8)\n");
}

TEST(DequantizeAfterMovement, ScalesOfChannelsAndWiderIntegersStay) {
  const std::string scales = "meta[relay.Constant][0] /*Tensor[(4), float32]*/";
  const std::string zeros = "zeros(shape=[4], dtype=\"int8\")";
  const std::string text = Moved("transpose(qnn.dequantize(%x, " + scales + ", " + zeros + "))");
  EXPECT_TRUE(text.ends_with("transpose(%1)\n")) << text;
  EXPECT_EQ(Moved("transpose(qnn.dequantize(cast(%y, dtype=\"int32\"), 0.5f, 3))"),
            kBytes + "%0 = cast(%y, dtype=\"int32\");\n%1 = qnn.dequantize(%0, 0.5f, 3);\ntranspose(%1)\n");
}

}  // namespace
}  // namespace collage
