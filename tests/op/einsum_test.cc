#include "op_testing.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string InferEinsum(const std::vector<TensorType>& operands, const std::string& equation) {
  TupleType tuple;
  for (const TensorType& operand : operands) tuple.fields.emplace_back(operand);
  return Infer("einsum", {Type(tuple)}, {{"equation", equation}});
}

Tensor ApplyEinsum(const std::vector<Tensor>& operands, const std::string& equation) {
  return ApplyToTuple("einsum", operands, {{"equation", equation}});
}

TEST(EinsumTest, InfersShapes) {
  EXPECT_EQ(InferEinsum({T({2, 3}), T({3, 4})}, "ij, jk -> ik"), "Tensor[(2, 4), float32]");
  EXPECT_EQ(InferEinsum({T({2, 3}), T({3, 4})}, "ij,jk"), "Tensor[(2, 4), float32]");
  EXPECT_EQ(InferEinsum({T({5, 2, 3}), T({1, 3, 4})}, "...ij,...jk->...ik"), "Tensor[(5, 2, 4), float32]");
  EXPECT_EQ(InferEinsum({T({3, 3})}, "ii->"), "float32");
}

TEST(EinsumTest, RefusesWhatBreaksAConstraint) {
  EXPECT_THAT(InferEinsum({T({2, 3})}, "ij,jk->ik"), HasSubstr("expected 1 terms"));
  EXPECT_THAT(InferEinsum({T({2, 3})}, "ijk->i"), HasSubstr("expected a letter a dimension"));
  EXPECT_THAT(InferEinsum({T({2, 3})}, "ii->i"), HasSubstr("the extents 2 and 3"));
  EXPECT_THAT(InferEinsum({T({2, 3})}, "ij->k"), HasSubstr("expected letters of the terms in the result"));
  EXPECT_THAT(InferEinsum({T({2, 3})}, "ij->ii"), HasSubstr("each once"));
  EXPECT_THAT(InferEinsum({T({2})}, "1->1"), HasSubstr("expected letters"));
  EXPECT_THAT(InferEinsum({T({2}), T({2}, DType::kInt8)}, "i,i->i"), HasSubstr("data.1 has dtype int8"));
}

TEST(EinsumTest, SumsProducts) {
  const Tensor a = Random(T({2, 3, 4}));
  const Tensor b = Random(T({2, 4, 5}), 2);
  ExpectTensor(ApplyEinsum({a, b}, "bij,bjk->bki"), T({2, 5, 3}), [x = Reader(a), y = Reader(b)](const Index& o) {
    double sum = 0;
    for (int64_t j = 0; j < 4; ++j) sum += x({o[0], o[2], j}) * y({o[0], j, o[1]});
    return sum;
  });
  const Tensor square = Floats({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(ApplyEinsum({square}, "ii->i").ToDouble(), ElementsAre(1, 4));
  EXPECT_THAT(ApplyEinsum({square}, "ii").ToDouble(), ElementsAre(5));
}

}  // namespace
}  // namespace collage
