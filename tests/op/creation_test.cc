#include "op_testing.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CreationTest, InfersTypes) {
  EXPECT_EQ(Infer("zeros", {}, {{"shape", Ints{2, 3}}}), "Tensor[(2, 3), float32]");
  EXPECT_EQ(Infer("ones", {}, {{"shape", Ints{}}, {"dtype", "bool"}}), "bool");
  EXPECT_EQ(Infer("full", {T({}, DType::kInt8)}, {{"shape", Ints{2}}}), "Tensor[(2,), int8]");
  EXPECT_EQ(Infer("full", {T({}, DType::kInt8)}, {{"shape", Ints{2}}, {"dtype", "int8"}}), "Tensor[(2,), int8]");
  EXPECT_EQ(Infer("zeros_like", {T({2}, DType::kFloat16)}), "Tensor[(2,), float16]");
  EXPECT_EQ(Infer("ones_like", {T({2})}), "Tensor[(2,), float32]");
  EXPECT_EQ(Infer("shape_of", {T({2, 3})}), "Tensor[(2,), int64]");
  EXPECT_EQ(Infer("shape_of", {T({})}, {{"dtype", "int32"}}), "Tensor[(0,), int32]");
}

TEST(CreationTest, RefusesWhatBreaksAConstraint) {
  EXPECT_THAT(Infer("zeros", {}), HasSubstr("attribute 'shape' is missing"));
  EXPECT_THAT(Infer("zeros", {}, {{"shape", Ints{-1}}}), HasSubstr("the result would have shape (-1,), expected extents of at least 0"));
  EXPECT_THAT(Infer("ones", {}, {{"shape", Ints{int64_t{1} << 40, 2}}}), HasSubstr("expected at most 2^40 elements"));
  EXPECT_THAT(Infer("ones", {}, {{"shape", Ints{int64_t{1} << 62, int64_t{1} << 62, 0}}}), HasSubstr("expected at most 2^40 elements"));
  EXPECT_THAT(Infer("ones", {}, {{"shape", Ints{1}}, {"dtype", "int"}}), HasSubstr("expected the name of a dtype"));
  EXPECT_THAT(Infer("full", {T({1})}, {{"shape", Ints{2}}}), HasSubstr("fill_value has shape (1,), expected 0 dimensions"));
  EXPECT_THAT(Infer("full", {T({})}, {{"shape", Ints{2}}, {"dtype", "int8"}}),
              HasSubstr("attribute 'dtype' is \"int8\", expected \"float32\""));
  EXPECT_THAT(Infer("shape_of", {T({2})}, {{"dtype", "float32"}}), HasSubstr("expected \"int64\" or \"int32\""));
  EXPECT_THAT(Infer("zeros_like", {TupleType{}}), HasSubstr("expected a tensor"));
}

TEST(CreationTest, FillsEveryDType) {
  for (const char* dtype :
       {"float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"}) {
    EXPECT_THAT(Apply("ones", {}, {{"shape", Ints{3}}, {"dtype", dtype}}).ToDouble(), ElementsAre(1, 1, 1)) << dtype;
    EXPECT_THAT(Apply("zeros", {}, {{"shape", Ints{2}}, {"dtype", dtype}}).ToDouble(), ElementsAre(0, 0)) << dtype;
  }
  EXPECT_THAT(Apply("full", {Tensor::Scalar(7, DType::kInt16)}, {{"shape", Ints{2, 1}}}).ToInt64(), ElementsAre(7, 7));
  EXPECT_THAT(Apply("ones_like", {Random(T({2}))}).ToDouble(), ElementsAre(1, 1));
  EXPECT_THAT(Apply("zeros_like", {Random(T({2}))}).ToDouble(), ElementsAre(0, 0));
}

TEST(CreationTest, ShapeOf) {
  EXPECT_THAT(Apply("shape_of", {Random(T({5, 0, 7}))}).ToInt64(), ElementsAre(5, 0, 7));
  EXPECT_THAT(Apply("shape_of", {Random(T({5}))}, {{"dtype", "int32"}}).ToInt64(), ElementsAre(5));
}

}  // namespace
}  // namespace collage
