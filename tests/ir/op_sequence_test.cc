#include "collage/ir/op_sequence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ir/parsed.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

Result<OpSequence> SequenceOf(const std::string& function) { return ToOpSequence(*ParsedMain(function)->As<Function>()); }

TEST(OpSequence, ProjectionsOfNestedTuplesFindTheirTensors) {
  const Result<OpSequence> sequence = SequenceOf("fn (%x: ((float32, float32), float32)) { subtract(%x.1, %x.0.1) }");
  ASSERT_TRUE(sequence) << sequence.error().message;
  EXPECT_EQ(sequence->parameters, (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(sequence->steps[0].inputs, (std::vector<size_t>{2, 1}));
}

TEST(OpSequence, FunctionsAsParametersAreRefused) {
  const Result<OpSequence> sequence = SequenceOf("fn (%x: (fn (float32) -> float32, float32)) { exp(%x.1) }");
  ASSERT_FALSE(sequence);
  EXPECT_THAT(sequence.error().message, HasSubstr("a parameter is, or holds, a function"));
}

}  // namespace
}  // namespace collage
