#include "collage/driver/compared_inputs.h"

#include <gtest/gtest.h>

#include "collage/ir/parse.h"
#include "collage/op/table.h"
#include "collage/transform/outline_blocks.h"

namespace collage {
namespace {

TEST(ComparedInputsTest, NumbersThatScalarsAreComparedWithAreFound) {
  const std::string text = R"(
def @main(%x: Tensor[(3,), int64], %rate: Tensor[(1,), int64], %mode: int64) -> Tensor[(3,), int64] {
  if (equal(16000i64, reshape(%rate, newshape=[]))) {
    if (equal(%mode, 2i64)) { negative(%x) } else { abs(%x) }
  } else {
    if (equal(reshape(%rate, newshape=[]), 8000i64)) { add(%x, %mode) } else { %x }
  }
}
)";
  const IRModule module = ParseModule(text, Operators(), {}).value().module;
  const std::vector<std::vector<Tensor>> found = ComparedWith(OutlineBlocks(module).value());
  ASSERT_EQ(found.size(), 3u);
  EXPECT_TRUE(found[0].empty());
  ASSERT_EQ(found[1].size(), 2u);
  EXPECT_EQ(found[1][0].shape(), Shape{1});
  EXPECT_EQ(found[1][0].Data<int64_t>()[0] + found[1][1].Data<int64_t>()[0], 24000);
  ASSERT_EQ(found[2].size(), 1u);
  EXPECT_EQ(found[2][0].Data<int64_t>()[0], 2);
}

}  // namespace
}  // namespace collage
