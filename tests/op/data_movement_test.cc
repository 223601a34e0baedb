#include <limits>

#include "op_testing.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

const TensorType kData = T({2, 3, 4});
const std::vector<DType> kDTypes = {DType::kFloat32, DType::kInt64, DType::kInt8, DType::kInt16};

AttributeValue Widths(const std::vector<Ints>& widths) {
  AttributeValue::List list;
  for (const Ints& pair : widths) list.emplace_back(pair);
  return list;
}

TEST(DataMovementTest, InfersShapes) {
  const TupleType pair{{kData, T({2, 5, 4})}};
  EXPECT_EQ(Infer("transpose", {kData}), "Tensor[(4, 3, 2), float32]");
  EXPECT_EQ(Infer("transpose", {kData}, {{"axes", Ints{1, -1, 0}}}), "Tensor[(3, 4, 2), float32]");
  EXPECT_EQ(Infer("concatenate", {pair}, {{"axis", 1}}), "Tensor[(2, 8, 4), float32]");
  EXPECT_EQ(Infer("stack", {TupleType{{kData, kData}}}, {{"axis", -1}}), "Tensor[(2, 3, 4, 2), float32]");
  EXPECT_EQ(Infer("split", {kData}, {{"indices_or_sections", 2}, {"axis", -1}}),
            "(Tensor[(2, 3, 2), float32], Tensor[(2, 3, 2), float32])");
  EXPECT_EQ(Infer("split", {T({5})}, {{"indices_or_sections", Ints{1, 1}}}),
            "(Tensor[(1,), float32], Tensor[(0,), float32], Tensor[(4,), float32])");
  EXPECT_EQ(Infer("strided_slice", {kData}, {{"begin", Ints{0, -2}}, {"end", Ints{1, 100}}}), "Tensor[(1, 2, 4), float32]");
  EXPECT_EQ(Infer("strided_slice", {kData}, {{"begin", Ints{3}}, {"end", Ints{0}}, {"strides", -2}, {"axes", Ints{2}}}),
            "Tensor[(2, 3, 2), float32]");
  EXPECT_EQ(Infer("nn.pad", {T({2, 3}), T({})}, {{"pad_width", Widths({{1, 0}, {2, 3}})}}), "Tensor[(3, 8), float32]");
  EXPECT_EQ(Infer("tile", {T({2, 3})}, {{"reps", Ints{2}}}), "Tensor[(2, 6), float32]");
  EXPECT_EQ(Infer("tile", {T({2, 3})}, {{"reps", Ints{4, 1, 2}}}), "Tensor[(4, 2, 6), float32]");
}

TEST(DataMovementTest, JoinsRefuseWhatBreaksAConstraint) {
  const auto concatenate = [](const Type& tuple, int axis) { return Infer("concatenate", {tuple}, {{"axis", axis}}); };
  EXPECT_THAT(concatenate(kData, 0), HasSubstr("expected a tuple of tensors"));
  EXPECT_THAT(concatenate(TupleType{}, 0), HasSubstr("data is an empty tuple, expected at least one tensor"));
  EXPECT_THAT(concatenate(TupleType{{kData, TupleType{{kData}}}}, 0), HasSubstr("data.1 is of type"));
  EXPECT_THAT(concatenate(TupleType{{kData, T({3, 3, 4})}}, 1), HasSubstr("data.1 has shape (3, 3, 4), expected (2, 3, 4)"));
  EXPECT_THAT(concatenate(TupleType{{kData, T({2, 3})}}, 0), HasSubstr("data.1 has shape (2, 3), expected 3 dimensions"));
  EXPECT_THAT(concatenate(TupleType{{kData, T({2, 3, 4}, DType::kInt8)}}, 0), HasSubstr("data.1 has dtype int8, expected float32"));
  EXPECT_THAT(concatenate(TupleType{{kData}}, 3), HasSubstr("expected an axis in [-3, 3)"));
  EXPECT_THAT(concatenate(TupleType{{T({})}}, 0), HasSubstr("expected an axis in"));
  EXPECT_THAT(Infer("stack", {TupleType{{kData, T({2, 3, 5})}}}), HasSubstr("data.1 has shape (2, 3, 5), expected (2, 3, 4)"));
  EXPECT_THAT(Infer("stack", {TupleType{{kData, T({2, 3, 4}, DType::kInt8)}}}), HasSubstr("data.1 has dtype int8"));
  EXPECT_THAT(Infer("stack", {TupleType{{kData}}}, {{"axis", 4}}), HasSubstr("expected an axis in [-4, 4)"));
}

TEST(DataMovementTest, RefusesWhatBreaksAConstraint) {
  EXPECT_THAT(Infer("transpose", {kData}, {{"axes", Ints{0, 1}}}), HasSubstr("attribute 'axes' has 2 values, expected each of the 3"));
  EXPECT_THAT(Infer("transpose", {kData}, {{"axes", Ints{0, 1, 1}}}), HasSubstr("attribute 'axes' names axis 1 twice"));
  EXPECT_THAT(Infer("split", {kData}), HasSubstr("attribute 'indices_or_sections' is missing"));
  EXPECT_THAT(Infer("split", {kData}, {{"indices_or_sections", 3}}), HasSubstr("is 3, expected a divisor of the extent 2"));
  EXPECT_THAT(Infer("split", {kData}, {{"indices_or_sections", 0}}), HasSubstr("expected a divisor"));
  EXPECT_THAT(Infer("split", {T({1 << 21})}, {{"indices_or_sections", 1 << 21}}), HasSubstr("at most 1048576"));
  EXPECT_THAT(Infer("split", {kData}, {{"indices_or_sections", Ints{2, 1}}, {"axis", 2}}),
              HasSubstr("is [2, 1], expected ascending places"));
  EXPECT_THAT(Infer("split", {kData}, {{"indices_or_sections", Ints{5}}, {"axis", 2}}),
              HasSubstr("expected ascending places between 0 and"));
  EXPECT_THAT(Infer("split", {kData}, {{"indices_or_sections", 2}, {"axis", 3}}), HasSubstr("expected an axis in [-3, 3)"));
  const auto slice = [](Attributes attributes) { return Infer("strided_slice", {kData}, attributes); };
  EXPECT_THAT(slice({{"begin", 0}}), HasSubstr("attribute 'end' is missing"));
  EXPECT_THAT(slice({{"begin", Ints{0, 0}}, {"end", 1}}), HasSubstr("attribute 'end' has 1 values, expected 2 as 'begin' has"));
  EXPECT_THAT(slice({{"begin", Ints{0, 0}}, {"end", Ints{1, 1}}, {"strides", Ints{1, 1, 1}}}),
              HasSubstr("attribute 'strides' has 3 values"));
  EXPECT_THAT(slice({{"begin", 0}, {"end", 1}, {"strides", 0}}), HasSubstr("attribute 'strides' has the value 0"));
  EXPECT_THAT(slice({{"begin", 0}, {"end", 1}, {"axes", Ints{0, 1}}}), HasSubstr("attribute 'axes' has 2 values"));
  EXPECT_THAT(slice({{"begin", 0}, {"end", 1}, {"axes", Ints{3}}}), HasSubstr("expected an axis in [-3, 3)"));
  EXPECT_THAT(slice({{"begin", Ints{0, 0, 0, 0}}, {"end", Ints{1, 1, 1, 1}}}), HasSubstr("expected at most the 3 dimensions of data"));
  EXPECT_THAT(Infer("tile", {kData}, {{"reps", Ints{-1}}}), HasSubstr("attribute 'reps' has the value -1"));
  EXPECT_THAT(Infer("tile", {kData}, {{"reps", Ints{int64_t{1} << 62}}}), HasSubstr("attribute 'reps' makes an extent larger"));
}

TEST(DataMovementTest, PadRefusesWhatBreaksAConstraint) {
  const TensorType data = T({2, 3});
  const auto pad = [&](const AttributeValue& widths, const char* mode = "constant") {
    return Infer("nn.pad", {data, T({})}, {{"pad_width", widths}, {"pad_mode", mode}});
  };
  EXPECT_THAT(pad(Widths({{1, 1}})), HasSubstr("expected [before, after] for each of the 2 dimensions of data"));
  EXPECT_THAT(pad(Widths({{1, 1}, {1}})), HasSubstr("expected [before, after]"));
  EXPECT_THAT(pad(Ints{1, 1}), HasSubstr("expected [before, after]"));
  EXPECT_THAT(pad(1), HasSubstr("attribute 'pad_width' is 1, expected a list"));
  EXPECT_THAT(pad(Widths({{0, -1}, {0, 0}})), HasSubstr("attribute 'pad_width' has the value -1"));
  EXPECT_THAT(pad(Widths({{0, 0}, {0, 0}}), "wrap"), HasSubstr("attribute 'pad_mode' is \"wrap\""));
  EXPECT_THAT(pad(Widths({{2, 0}, {0, 0}}), "reflect"), HasSubstr("has the value 2 along axis 0, expected less than the extent"));
  EXPECT_THAT(Infer("nn.pad", {T({0}), T({})}, {{"pad_width", Widths({{1, 0}})}, {"pad_mode", "edge"}}),
              HasSubstr("along axis 0, expected 0"));
  EXPECT_THAT(Infer("nn.pad", {data, T({1})}, {{"pad_width", Widths({{0, 0}, {0, 0}})}}), HasSubstr("pad_value has shape (1,)"));
  EXPECT_THAT(Infer("nn.pad", {data, T({}, DType::kInt32)}, {{"pad_width", Widths({{0, 0}, {0, 0}})}}),
              HasSubstr("pad_value has dtype int32"));
}

TEST(DataMovementTest, TransposePermutesDimensions) {
  for (const DType dtype : kDTypes) {
    for (const Ints& axes : std::vector<Ints>{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
      const Tensor data = Random(T({2, 3, 4}, dtype));
      Shape shape;
      for (int64_t axis : axes) shape.push_back(kData.shape[static_cast<size_t>(axis)]);
      ExpectTensor(Apply("transpose", {data}, {{"axes", axes}}), T(shape, dtype), [&, x = Reader(data)](const Index& o) {
        Index source(3);
        for (size_t i = 0; i < 3; ++i) source[static_cast<size_t>(axes[i])] = o[i];
        return x(source);
      });
    }
  }
}

TEST(DataMovementTest, ConcatenateAndSplitAreInverse) {
  for (const DType dtype : kDTypes) {
    for (const int axis : {0, 1, 2, -1}) {
      const auto d = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
      std::vector<Tensor> parts;
      for (const int64_t extent : {2, 1, 0, 3}) {
        Shape shape = {4, 5, 6};
        shape[d] = extent;
        parts.push_back(Random(T(shape, dtype), static_cast<uint64_t>(extent) + 1));
      }
      const Tensor joined = ApplyToTuple("concatenate", parts, {{"axis", axis}});
      Shape shape = {4, 5, 6};
      shape[d] = 6;
      ExpectTensor(joined, T(shape, dtype), [&](const Index& o) {
        Index source = o;
        size_t part = 0;
        while (source[d] >= parts[part].shape()[d]) source[d] -= parts[part++].shape()[d];
        return Reader(parts[part])(source);
      });
      const std::vector<Tensor> split = ApplyAll("split", {joined}, {{"indices_or_sections", Ints{2, 3, 3}}, {"axis", axis}});
      ASSERT_EQ(split.size(), parts.size());
      for (size_t i = 0; i < parts.size(); ++i) EXPECT_TRUE(BitwiseEqual(split[i], parts[i]));
      EXPECT_EQ(ApplyAll("split", {joined}, {{"indices_or_sections", 3}, {"axis", axis}}).size(), 3u);
    }
  }
}

TEST(DataMovementTest, StackAddsADimension) {
  const std::vector<Tensor> parts = {Random(kData, 1), Random(kData, 2)};
  for (const int axis : {0, 1, 2, 3, -1}) {
    const auto d = static_cast<size_t>(axis < 0 ? axis + 4 : axis);
    Shape shape = kData.shape;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(d), 2);
    ExpectTensor(ApplyToTuple("stack", parts, {{"axis", axis}}), T(shape), [&](const Index& o) {
      Index source = o;
      source.erase(source.begin() + static_cast<std::ptrdiff_t>(d));
      return Reader(parts[static_cast<size_t>(o[d])])(source);
    });
  }
}

TEST(DataMovementTest, SliceAsNumPy) {
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  const Tensor data = Int64s({6}, {0, 1, 2, 3, 4, 5});
  const auto slice = [&](int64_t begin, int64_t end, int64_t stride) {
    return Apply("strided_slice", {data}, {{"begin", Ints{begin}}, {"end", Ints{end}}, {"strides", Ints{stride}}}).ToInt64();
  };
  EXPECT_EQ(slice(1, 4, 1), (Ints{1, 2, 3}));
  EXPECT_EQ(slice(0, kEnd, 2), (Ints{0, 2, 4}));
  EXPECT_EQ(slice(-2, kEnd, 1), (Ints{4, 5}));
  EXPECT_EQ(slice(-100, -3, 1), (Ints{0, 1, 2}));
  EXPECT_EQ(slice(4, 1, 1), (Ints{}));
  EXPECT_EQ(slice(kEnd, -kEnd, -1), (Ints{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(slice(4, 0, -3), (Ints{4, 1}));
  EXPECT_EQ(slice(-1, std::numeric_limits<int64_t>::min(), -2), (Ints{5, 3, 1}));
  EXPECT_EQ(slice(2, kEnd, kEnd), (Ints{2}));
  EXPECT_EQ(slice(2, -kEnd, std::numeric_limits<int64_t>::min()), (Ints{2}));
}

TEST(DataMovementTest, SliceOfSeveralDimensions) {
  const Tensor data = Random(T({5, 6, 7}, DType::kInt16));
  const Attributes attributes = {{"begin", Ints{6, 1}}, {"end", Ints{0, 5}}, {"strides", Ints{-2, 3}}, {"axes", Ints{2, 0}}};
  ExpectTensor(Apply("strided_slice", {data}, attributes), T({2, 6, 3}, DType::kInt16), [x = Reader(data)](const Index& o) {
    return x({1 + 3 * o[0], o[1], 6 - 2 * o[2]});
  });
}

TEST(DataMovementTest, PadAddsElements) {
  const std::vector<Ints> widths = {{1, 0}, {2, 1}, {0, 3}};
  for (const DType dtype : kDTypes) {
    const Tensor data = Random(T({2, 3, 4}, dtype));
    const Tensor value = Tensor::Scalar(9, dtype);
    const Reader x(data);
    for (const std::string mode : {"constant", "edge", "reflect"}) {
      const Tensor padded = Apply("nn.pad", {data, value}, {{"pad_width", Widths(widths)}, {"pad_mode", mode}});
      ExpectTensor(padded, T({3, 6, 7}, dtype), [&](const Index& o) {
        Index source = o;
        for (size_t d = 0; d < 3; ++d) {
          const int64_t last = data.shape()[d] - 1;
          source[d] -= widths[d][0];
          if (mode == "constant" && (source[d] < 0 || source[d] > last)) return 9.0;
          if (mode == "edge") source[d] = std::min(std::max<int64_t>(source[d], 0), last);
          if (mode == "reflect") source[d] = last - std::abs(last - std::abs(source[d]));
        }
        return x(source);
      });
    }
  }
}

TEST(DataMovementTest, TileRepeats) {
  for (const DType dtype : kDTypes) {
    const Tensor data = Random(T({2, 3}, dtype));
    ExpectTensor(Apply("tile", {data}, {{"reps", Ints{2, 1, 3}}}), T({2, 2, 9}, dtype), [x = Reader(data)](const Index& o) {
      return x({o[1] % 2, o[2] % 3});
    });
    ExpectTensor(Apply("tile", {data}, {{"reps", Ints{2}}}), T({2, 6}, dtype), [x = Reader(data)](const Index& o) {
      return x({o[0], o[1] % 3});
    });
  }
  EXPECT_EQ(Apply("tile", {Random(T({2, 3}))}, {{"reps", Ints{0, 1}}}).ElementCount(), 0);
  EXPECT_EQ(Apply("tile", {Random(T({0, 3}))}, {{"reps", Ints{2, 1}}}).ElementCount(), 0);
}

}  // namespace
}  // namespace collage
