#include "collage/tensor/strings.h"

#include <cmath>

#include "tests/op/op_testing.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Tensor kWords = StringTensor({2, 2}, {"apple", "Bee", "", "apple"});
const TensorType kType = T({2, 2}, DType::kString);

TEST(StringOperators, ConcatenateBroadcasting) {
  EXPECT_THAT(StringsOf(Apply("strings.concat", {kWords, StringTensor({2}, {"+", "-"})})), ElementsAre("apple+", "Bee-", "+", "apple-"));
  EXPECT_THAT(Infer("strings.concat", {kType, T({2, 2})}), HasSubstr("rhs has dtype float32, expected string"));
}

TEST(StringOperators, MatchTheWhole) {
  const Tensor matches = Apply("strings.full_match", {kWords}, {{"pattern", "[a-z]+"}});
  EXPECT_THAT(matches.ToInt64(), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(Infer("strings.full_match", {kType}, {{"pattern", "(a"}}), HasSubstr("is no regular expression: missing ): (a"));
}

TEST(StringOperators, ChangeCase) {
  const Tensor data = StringTensor({2}, {"\xc3\x84pfel", "\xff raw"});
  EXPECT_THAT(StringsOf(Apply("strings.change_case", {data}, {{"case", "lower"}})), ElementsAre("\xc3\xa4pfel", "\xff raw"));
  EXPECT_THAT(StringsOf(Apply("strings.change_case", {data}, {{"case", "upper"}})), ElementsAre("\xc3\x84PFEL", "\xff raw"));
  EXPECT_THAT(Infer("strings.change_case", {kType}, {{"case", "title"}}), HasSubstr("expected \"lower\" or \"upper\""));
}

TEST(StringOperators, AreComparedAndMovedByOthers) {
  EXPECT_THAT(Apply("equal", {kWords, StringTensor({}, {"apple"})}).ToInt64(), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(Apply("not_equal", {kWords, StringTensor({}, {"apple"})}).ToInt64(), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(StringsOf(Apply("transpose", {kWords})), ElementsAre("apple", "", "Bee", "apple"));
  EXPECT_THAT(StringsOf(Apply("take", {kWords, Int64s({1}, {1})}, {{"axis", 1}})), ElementsAre("Bee", "apple"));
  EXPECT_THAT(StringsOf(ApplyToTuple("concatenate", {kWords, kWords}, {{"axis", 0}})),
              ElementsAre("apple", "Bee", "", "apple", "apple", "Bee", "", "apple"));
}

TEST(StringOperators, AreReadAndWrittenAsNumbers) {
  const Tensor texts = StringTensor({4}, {"3.5", "-1e3", "300", "none"});
  ExpectTensor(Apply("cast", {StringTensor({2}, {"3.5", "-1e3"})}, {{"dtype", "float32"}}), T({2}),
               [](const Index& i) { return i[0] == 0 ? 3.5 : -1000; });
  EXPECT_THAT(Apply("cast", {texts}, {{"dtype", "int8"}}).ToInt64(), ElementsAre(3, -1, 127, 0));
  EXPECT_TRUE(std::isnan(Apply("cast", {texts}, {{"dtype", "float64"}}).ToDouble()[3]));
  EXPECT_THAT(StringsOf(Apply("cast", {Floats({3}, {0.1F, -2, INFINITY})}, {{"dtype", "string"}})), ElementsAre("0.1", "-2", "INF"));
}

TEST(StringOperators, OthersRefuseThem) {
  EXPECT_THAT(Infer("add", {kType, kType}), HasSubstr("argument 0 is of strings, which this operator does not take"));
  EXPECT_THAT(Infer("ones", {}, {{"shape", Ints{2}}, {"dtype", "string"}}), HasSubstr("would be of strings"));
  EXPECT_THAT(Infer("reinterpret", {kType}, {{"dtype", "int64"}}), HasSubstr("expected a dtype of as many bits"));
}

}  // namespace
}  // namespace collage
