#include "op_testing.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TriluTest, KeepsATriangleOfEachMatrix) {
  EXPECT_THAT(Infer("trilu", {T({3})}), HasSubstr("expected at least 2 dimensions"));
  const Tensor data = Random(T({2, 3, 4}));
  for (const bool upper : {true, false}) {
    for (const int k : {-4, -1, 0, 2, 9}) {
      ExpectTensor(Apply("trilu", {data}, {{"k", k}, {"upper", upper}}), T({2, 3, 4}), [&](const Index& o) {
        const bool kept = upper ? o[2] - o[1] >= k : o[2] - o[1] <= k;
        return kept ? Reader(data)(o) : 0.0;
      });
    }
  }
}

TEST(TopKTest, InfersShapesAndRefuses) {
  EXPECT_EQ(Infer("topk", {T({3, 5})}, {{"k", 2}}), "(Tensor[(3, 2), float32], Tensor[(3, 2), int64])");
  EXPECT_THAT(Infer("topk", {T({3, 5})}, {{"k", 6}}), HasSubstr("attribute 'k' is 6, expected at most the extent 5"));
  EXPECT_THAT(Infer("topk", {T({3}, DType::kBool)}), HasSubstr("data has dtype bool"));
}

TEST(TopKTest, OfEqualElementsTheFirstComesFirst) {
  const Tensor data = Floats({2, 4}, {1, 3, 3, 2, 0, -1, -1, 5});
  std::vector<Tensor> result = ApplyAll("topk", {data}, {{"k", 3}});
  EXPECT_THAT(result[0].ToDouble(), ElementsAre(3, 3, 2, 5, 0, -1));
  EXPECT_THAT(result[1].ToInt64(), ElementsAre(1, 2, 3, 3, 0, 1));
  result = ApplyAll("topk", {data}, {{"k", 1}, {"axis", 0}, {"is_ascend", true}});
  EXPECT_THAT(result[0].ToDouble(), ElementsAre(0, -1, -1, 2));
  EXPECT_THAT(result[1].ToInt64(), ElementsAre(1, 1, 1, 0));
}

TEST(OneHotTest, PutsOneValueAtEachIndex) {
  const Tensor indices = Int64s({2}, {2, 7});
  const Tensor on = Floats({}, {5});
  const Tensor off = Floats({}, {-1});
  EXPECT_THAT(Apply("one_hot", {indices, on, off}, {{"depth", 3}}).ToDouble(), ElementsAre(-1, -1, 5, -1, -1, -1));
  EXPECT_THAT(Apply("one_hot", {indices, on, off}, {{"depth", 3}, {"axis", 0}}).ToDouble(), ElementsAre(-1, -1, -1, -1, 5, -1));
  EXPECT_THAT(Infer("one_hot", {indices.type(), on.type(), off.type()}), HasSubstr("attribute 'depth' is missing"));
  EXPECT_THAT(Infer("one_hot", {T({2}), on.type(), off.type()}, {{"depth", 3}}), HasSubstr("indices has dtype float32"));
}

TEST(ReverseSequenceTest, ReversesTheFirstElementsOfEachSequence) {
  const Tensor data = Floats({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(Apply("reverse_sequence", {data, Int64s({2}, {3, 9})}).ToDouble(), ElementsAre(3, 2, 1, 4, 8, 7, 6, 5));
  EXPECT_THAT(Infer("reverse_sequence", {T({2, 4}), T({4}, DType::kInt64)}), HasSubstr("seq_lengths has shape (4,), expected (2,)"));
  EXPECT_THAT(Infer("reverse_sequence", {T({2, 4}), T({2}, DType::kInt64)}, {{"seq_axis", 0}}), HasSubstr("expected different axes"));
}

TEST(CumulativeTest, FoldsAlongAnAxis) {
  const Tensor data = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(Apply("cumsum", {data}, {{"axis", 1}}).ToDouble(), ElementsAre(1, 3, 6, 4, 9, 15));
  EXPECT_THAT(Apply("cumsum", {data}, {{"axis", 0}, {"exclusive", true}}).ToDouble(), ElementsAre(0, 0, 0, 1, 2, 3));
  EXPECT_THAT(Apply("cumprod", {data}, {{"axis", -1}}).ToDouble(), ElementsAre(1, 2, 6, 4, 20, 120));
  EXPECT_THAT(Infer("cumsum", {T({2})}, {{"axis", 1}}), HasSubstr("expected an axis in [-1, 1)"));
  EXPECT_THAT(Infer("cumprod", {T({2}, DType::kBool)}), HasSubstr("data has dtype bool"));
}

}  // namespace
}  // namespace collage
