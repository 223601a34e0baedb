#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "op_testing.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TensorType kData = T({2, 3, 4});

TEST(ReduceTest, InfersShapes) {
  EXPECT_EQ(Infer("sum", {kData}), "float32");
  EXPECT_EQ(Infer("mean", {kData}, {{"keepdims", true}}), "Tensor[(1, 1, 1), float32]");
  EXPECT_EQ(Infer("max", {kData}, {{"axis", -1}}), "Tensor[(2, 3), float32]");
  EXPECT_EQ(Infer("min", {kData}, {{"axis", Ints{2, 0}}, {"keepdims", true}}), "Tensor[(1, 3, 1), float32]");
  EXPECT_EQ(Infer("prod", {kData}, {{"axis", 1}, {"exclude", true}}), "Tensor[(3,), float32]");
  EXPECT_EQ(Infer("sum", {kData}, {{"axis", Ints{}}}), "Tensor[(2, 3, 4), float32]");
  EXPECT_EQ(Infer("sum", {T({2, 0, 4})}, {{"axis", 1}}), "Tensor[(2, 4), float32]");
  EXPECT_EQ(Infer("max", {T({2, 0, 4})}, {{"axis", 0}}), "Tensor[(0, 4), float32]");
  EXPECT_EQ(Infer("argmax", {kData}, {{"axis", 1}}), "Tensor[(2, 4), int64]");
  EXPECT_EQ(Infer("argmin", {kData}), "int64");
}

TEST(ReduceTest, RefusesWhatBreaksAConstraint) {
  EXPECT_THAT(Infer("sum", {kData}, {{"axis", 3}}), HasSubstr("attribute 'axis' is 3, expected an axis in [-3, 3)"));
  EXPECT_THAT(Infer("sum", {kData}, {{"axis", Ints{1, -2}}}), HasSubstr("attribute 'axis' names axis 1 twice"));
  EXPECT_THAT(Infer("sum", {kData}, {{"axis", "all"}}), HasSubstr("expected a list of integers"));
  EXPECT_THAT(Infer("sum", {kData}, {{"exclude", true}}), HasSubstr("attribute 'exclude' is True without 'axis'"));
  EXPECT_THAT(Infer("sum", {T({2}, DType::kBool)}), HasSubstr("data has dtype bool"));
  for (const char* op : {"max", "min", "mean", "argmax", "argmin"})
    EXPECT_THAT(Infer(op, {T({2, 0, 4})}, {{"axis", 1}}), HasSubstr("expected extents of at least 1 along the axes reduced")) << op;
  EXPECT_THAT(Infer("sum", {kData}, {{"select_last_index", true}}), HasSubstr("has no attribute"));
}

/// The elements that fall on each output (axes reduced, not kept), each list in row-major order.
std::map<Index, std::vector<double>> Groups(const Tensor& data, const std::vector<bool>& reduced) {
  std::map<Index, std::vector<double>> groups;
  const Reader x(data);
  for (int64_t a = 0; a < data.shape()[0]; ++a) {
    for (int64_t b = 0; b < data.shape()[1]; ++b) {
      for (int64_t c = 0; c < data.shape()[2]; ++c) {
        const Index at = {a, b, c};
        Index kept;
        for (size_t d = 0; d < 3; ++d) {
          if (!reduced[d]) kept.push_back(at[d]);
        }
        groups[kept].push_back(x(at));
      }
    }
  }
  return groups;
}

double Fold(const std::string& op, const std::vector<double>& values) {
  double result = op == "prod" ? 1 : op == "sum" || op == "mean" ? 0 : values[0];
  for (double x : values) {
    if (op == "prod") result *= x;
    if (op == "sum" || op == "mean") result += x;
    if (op == "max") result = std::max(result, x);
    if (op == "min") result = std::min(result, x);
  }
  if (op == "argmax") result = static_cast<double>(std::max_element(values.begin(), values.end()) - values.begin());
  if (op == "argmin") result = static_cast<double>(std::min_element(values.begin(), values.end()) - values.begin());
  return op == "mean" ? result / static_cast<double>(values.size()) : result;
}

TEST(ReduceTest, FoldsEverySetOfAxes) {
  for (const char* op : {"sum", "mean", "max", "min", "prod", "argmax", "argmin"}) {
    for (int mask = 0; mask < 8; ++mask) {
      Ints axes;
      Ints others;
      std::vector<bool> reduced(3);
      Shape shape;
      for (int d = 0; d < 3; ++d) {
        reduced[static_cast<size_t>(d)] = (mask >> d) & 1;
        (reduced[static_cast<size_t>(d)] ? axes : others).push_back(d - (d == 1 ? 3 : 0));  // one of them negative
        if (!reduced[static_cast<size_t>(d)]) shape.push_back(kData.shape[static_cast<size_t>(d)]);
      }
      const Tensor data = Random(kData, static_cast<uint64_t>(mask) + 1);
      auto groups = Groups(data, reduced);
      const bool index = std::string(op).starts_with("arg");
      const TensorType type = T(shape, index ? DType::kInt64 : DType::kFloat32);
      const auto formula = [&](const Index& o) { return Fold(op, groups.at(o)); };
      ExpectTensor(Apply(op, {data}, {{"axis", axes}}), type, formula);
      ExpectTensor(Apply(op, {data}, {{"axis", others}, {"exclude", true}}), type, formula);
      EXPECT_EQ(Apply(op, {data}, {{"axis", axes}, {"keepdims", true}}).ToDouble(), Apply(op, {data}, {{"axis", axes}}).ToDouble());
    }
  }
}

TEST(ReduceTest, IntegersAndTies) {
  const Tensor data = Make<int8_t>({5}, DType::kInt8, {100, -7, 100, -7, 1});
  EXPECT_THAT(Apply("sum", {data}).ToInt64(), ElementsAre(static_cast<int8_t>(187)));
  EXPECT_THAT(Apply("mean", {Int64s({3}, {-1, -2, -4})}).ToInt64(), ElementsAre(-2));
  EXPECT_THAT(Apply("mean", {Make<uint8_t>({2}, DType::kUInt8, {255, 254})}).ToInt64(), ElementsAre(254));
  EXPECT_THAT(Apply("max", {data}).ToInt64(), ElementsAre(100));
  EXPECT_THAT(Apply("min", {data}).ToInt64(), ElementsAre(-7));
  EXPECT_THAT(Apply("argmax", {data}).ToInt64(), ElementsAre(0));
  EXPECT_THAT(Apply("argmax", {data}, {{"select_last_index", true}}).ToInt64(), ElementsAre(2));
  EXPECT_THAT(Apply("argmin", {data}, {{"select_last_index", true}}).ToInt64(), ElementsAre(3));
}

TEST(ReduceTest, NothingAndNaN) {
  ExpectTensor(Apply("sum", {Random(T({2, 0}))}, {{"axis", 1}}), T({2}), [](const Index&) { return 0.0; });
  ExpectTensor(Apply("prod", {Random(T({2, 0}))}, {{"axis", 1}}), T({2}), [](const Index&) { return 1.0; });
  for (const char* op : {"max", "min", "sum"}) EXPECT_TRUE(std::isnan(Apply(op, {Floats({3}, {1, NAN, 2})}).ToDouble()[0])) << op;
  EXPECT_EQ(Apply("max", {Floats({}, {4})}).ToDouble()[0], 4);
}

TEST(ReduceTest, SumsInDoublePrecision) {
  Tensor data(T({1 << 20}));
  for (int i = 0; i < (1 << 20); ++i) data.MutableData<float>()[i] = 0.1f;
  EXPECT_EQ(Apply("sum", {data}).Values<float>()[0], static_cast<float>(double{0.1f} * (1 << 20)));
}

}  // namespace
}  // namespace collage
