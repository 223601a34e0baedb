#include "op_testing.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

const TensorType kData = T({2, 3, 4});

TEST(ViewTest, InfersShapes) {
  EXPECT_EQ(Infer("copy", {kData}), "Tensor[(2, 3, 4), float32]");
  EXPECT_EQ(Infer("reshape", {kData}, {{"newshape", Ints{6, 4}}}), "Tensor[(6, 4), float32]");
  EXPECT_EQ(Infer("reshape", {kData}, {{"newshape", Ints{0, -1}}}), "Tensor[(2, 12), float32]");
  EXPECT_EQ(Infer("reshape", {kData}, {{"newshape", -1}}), "Tensor[(24,), float32]");
  EXPECT_EQ(Infer("reshape", {T({1}, DType::kFloat16)}, {{"newshape", Ints{}}}), "float16");
  EXPECT_EQ(Infer("nn.batch_flatten", {kData}), "Tensor[(2, 12), float32]");
  EXPECT_EQ(Infer("nn.batch_flatten", {T({5})}), "Tensor[(5, 1), float32]");
  EXPECT_EQ(Infer("squeeze", {T({1, 3, 1})}), "Tensor[(3,), float32]");
  EXPECT_EQ(Infer("squeeze", {T({1, 3, 1})}, {{"axis", Ints{-1}}}), "Tensor[(1, 3), float32]");
  EXPECT_EQ(Infer("expand_dims", {kData}, {{"axis", 1}, {"num_newaxis", 2}}), "Tensor[(2, 1, 1, 3, 4), float32]");
  EXPECT_EQ(Infer("expand_dims", {kData}, {{"axis", -1}}), "Tensor[(2, 3, 4, 1), float32]");
  EXPECT_EQ(Infer("expand_dims", {T({})}, {{"axis", 0}}), "Tensor[(1,), float32]");
}

TEST(ViewTest, RefusesWhatBreaksAConstraint) {
  const auto reshape = [](const Ints& newshape) { return Infer("reshape", {kData}, {{"newshape", newshape}}); };
  EXPECT_THAT(Infer("reshape", {kData}), HasSubstr("attribute 'newshape' is missing"));
  EXPECT_THAT(reshape({5, 5}), HasSubstr("attribute 'newshape' is (5, 5), expected a shape of the 24 elements of data"));
  EXPECT_THAT(reshape({5, -1}), HasSubstr("expected a shape of the 24 elements"));
  EXPECT_THAT(reshape({-1, -1}), HasSubstr("expected at most one -1"));
  EXPECT_THAT(reshape({-3, 24}), HasSubstr("expected extents of at least 0, or -1"));
  EXPECT_THAT(reshape({24, 1, 1, 0}), HasSubstr("expected 0 only where data"));
  EXPECT_THAT(reshape({int64_t{1} << 62, int64_t{1} << 62, 4}), HasSubstr("expected a shape of the 24 elements"));
  EXPECT_THAT(Infer("reshape", {T({0, 3})}, {{"newshape", Ints{0, -1}}}), HasSubstr("expected a shape of the 0 elements"));
  EXPECT_THAT(Infer("nn.batch_flatten", {T({})}), HasSubstr("expected at least 1 dimensions"));
  EXPECT_THAT(Infer("squeeze", {kData}, {{"axis", Ints{0}}}), HasSubstr("expected extent 1 along axis 0"));
  EXPECT_THAT(Infer("squeeze", {kData}, {{"axis", Ints{3}}}), HasSubstr("expected an axis in [-3, 3)"));
  EXPECT_THAT(Infer("expand_dims", {kData}, {{"axis", 4}}), HasSubstr("expected an axis in [-4, 4)"));
  EXPECT_THAT(Infer("expand_dims", {kData}, {{"axis", 0}, {"num_newaxis", -1}}), HasSubstr("attribute 'num_newaxis' is -1"));
  EXPECT_THAT(Infer("copy", {TupleType{{kData}}}), HasSubstr("expected a tensor"));
}

TEST(ViewTest, KeepTheElementsInOrder) {
  const std::vector<std::pair<const char*, Attributes>> views = {{"copy", {}},
                                                                 {"reshape", {{"newshape", Ints{4, 3, 2, 1}}}},
                                                                 {"nn.batch_flatten", {}},
                                                                 {"squeeze", {}},
                                                                 {"expand_dims", {{"axis", 0}}}};
  const Tensor data = Random(T({2, 1, 3, 4}, DType::kInt64));
  for (const auto& [name, attributes] : views) EXPECT_EQ(Apply(name, {data}, attributes).ToInt64(), data.ToInt64()) << name;
}

}  // namespace
}  // namespace collage
