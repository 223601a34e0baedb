#include "collage/op/row_independence.h"

#include <cstring>
#include <random>

#include "collage/ir/parse.h"
#include "collage/op/interpreter.h"
#include "collage/op/table.h"
#include "op_testing.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

constexpr int64_t kRows = 6;
constexpr int64_t kBlock = 2;

/// "fn (%x: Tensor[(N, 4), float32]) { ... }" with a number in the place of N. Parameters whose type begins with N have rows.
struct Case {
  std::string text;

  [[nodiscard]] Expr For(int64_t rows) const {
    std::string numbered = text;
    for (size_t at = numbered.find('N'); at != std::string::npos; at = numbered.find('N')) numbered.replace(at, 1, std::to_string(rows));
    ParseOptions options;
    options.missing_constant = RandomConstants(3);
    Result<ParsedExpr> parsed = ParseExpr(numbered, Operators(), options);
    EXPECT_TRUE(parsed) << numbered << "\n" << parsed.error().message;
    return parsed->expr;
  }
  [[nodiscard]] std::vector<RowUse> Uses() const {
    std::vector<RowUse> uses;
    const std::string parameters = text.substr(0, text.find('{'));
    for (size_t at = parameters.find("Tensor[("); at != std::string::npos; at = parameters.find("Tensor[(", at + 1))
      uses.push_back(parameters[at + 8] == 'N' ? RowUse::kRows : RowUse::kWhole);
    return uses;
  }
};

Tensor RowsOf(const Tensor& all, int64_t first, int64_t count) {
  TensorType type = all.type();
  type.shape[0] = count;
  Tensor some(type);
  const size_t bytes = all.ByteCount() / static_cast<size_t>(all.shape()[0]);
  std::memcpy(some.MutableBytes(), all.Bytes() + static_cast<size_t>(first) * bytes, some.ByteCount());
  return some;
}

/// All rows at once give what some at a time give.
void ExpectIndependent(const Expr& all, const Expr& some, const std::vector<RowUse>& uses) {
  std::vector<Tensor> inputs;
  for (const Expr& parameter : all->As<Function>()->parameters)
    FillRandom(inputs.emplace_back(*parameter->type().AsTensor()), 10 + inputs.size(), 0, 1);
  const Result<std::vector<Tensor>> expected = InterpretFunction(all, inputs);
  ASSERT_TRUE(expected) << expected.error().message;
  for (int64_t first = 0; first < kRows; first += kBlock) {
    std::vector<Tensor> block;
    for (size_t i = 0; i < inputs.size(); ++i) block.push_back(uses[i] == RowUse::kRows ? RowsOf(inputs[i], first, kBlock) : inputs[i]);
    const Result<std::vector<Tensor>> found = InterpretFunction(some, block);
    ASSERT_TRUE(found) << found.error().message;
    for (size_t i = 0; i < found->size(); ++i) EXPECT_TRUE(BitwiseEqual((*found)[i], RowsOf((*expected)[i], first, kBlock))) << i;
  }
}

TEST(RowIndependenceTest, OperatorsThatKeepRows) {
  const std::vector<std::string> bodies = {
      "%x: Tensor[(N, 4, 6, 6), float32], %w: Tensor[(3, 4, 3, 3), float32]) { nn.conv2d(%x, %w) }",
      "%x: Tensor[(N, 4, 6, 6), float32], %w: Tensor[(4, 3, 2, 2), float32]) { nn.conv2d_transpose(%x, %w, strides=[2, 2]) }",
      "%x: Tensor[(N, 2, 4, 4, 4), float32], %w: Tensor[(3, 2, 3, 3, 3), float32]) { nn.conv3d(%x, %w) }",
      "%x: Tensor[(N, 4, 6, 6), float32]) { nn.max_pool2d(%x, pool_size=[2, 2]) }",
      "%x: Tensor[(N, 4, 6, 6), float32]) { nn.avg_pool2d(%x, pool_size=[2, 2]) }",
      "%x: Tensor[(N, 4, 6, 6), float32]) { nn.global_avg_pool2d(%x) }",
      "%x: Tensor[(N, 4, 6, 6), float32]) { nn.upsampling(%x, scale_h=2f, scale_w=2f) }",
      "%x: Tensor[(N, 4, 6, 6), float32]) { nn.space_to_depth(%x, block_size=2) }",
      "%x: Tensor[(N, 8, 6), float32]) { nn.col2im(%x, output_size=[3, 4], kernel_size=[2, 2]) }",
      "%x: Tensor[(N, 6), float32], %w: Tensor[(3, 6), float32]) { nn.dense(%x, %w) }",
      "%x: Tensor[(N, 8), float32], %w: Tensor[(3, 1, 4), uint8], %s: Tensor[(3, 1), float32], %z: Tensor[(3, 1), uint8]) "
      "{ nn.matmul_nbits(%x, %w, %s, %z, block_size=8) }",
      "%x: Tensor[(N, 6), float32], %w: Tensor[(6, 3), float32]) { nn.matmul(%x, %w) }",
      "%x: Tensor[(N, 5, 6), float32], %w: Tensor[(6, 3), float32]) { nn.matmul(%x, %w) }",
      "%x: Tensor[(N, 6, 5), float32], %w: Tensor[(1, 6, 3), float32]) { nn.matmul(%x, %w, transpose_a=True) }",
      "%x: Tensor[(5, 6), float32], %y: Tensor[(N, 6, 3), float32]) { nn.matmul(%x, %y) }",
      "%x: Tensor[(N, 5, 6), float32], %y: Tensor[(N, 6, 3), float32]) { nn.matmul(%x, %y) }",
      "%x: Tensor[(N, 5, 6), float32], %y: Tensor[(N, 3, 6), float32]) { nn.batch_matmul(%x, %y) }",
      "%x: Tensor[(N, 3, 2, 2), float32], %g: Tensor[(3), float32]) { nn.batch_norm(%x, %g, %g, %g, %g).0 }",
      "%x: Tensor[(N, 6), float32], %g: Tensor[(6), float32]) { nn.layer_norm(%x, %g, %g) }",
      "%x: Tensor[(N, 3, 4), float32], %g: Tensor[(3), float32]) { nn.instance_norm(%x, %g, %g) }",
      "%x: Tensor[(N, 4, 4), float32], %g: Tensor[(4), float32]) { nn.group_norm(%x, %g, %g, num_groups=2) }",
      "%x: Tensor[(N, 6, 2, 2), float32]) { nn.lrn(%x) }",
      "%x: Tensor[(N, 6), float32]) { nn.softmax(%x) }",
      "%x: Tensor[(N, 6), float32]) { nn.log_softmax(%x, axis=1) }",
      "%x: Tensor[(N, 6), float32]) { tanh(%x) }",
      "%x: Tensor[(N, 6), float32]) { cast(%x, dtype=\"float64\") }",
      "%x: Tensor[(N, 6), float32], %y: Tensor[(N, 1), float32]) { multiply(%x, %y) }",
      "%x: Tensor[(N, 6), float32], %y: Tensor[(1, 6), float32]) { add(%y, %x) }",
      "%x: Tensor[(N, 6), float32], %y: Tensor[(6), float32]) { nn.bias_add(%x, %y) }",
      "%x: Tensor[(N, 6), float32], %y: Tensor[(6), float32]) { nn.prelu(%x, %y) }",
      "%x: Tensor[(N, 6), float32], %y: Tensor[(6), float32]) { where(greater(%x, %y), %x, %y) }",
      "%x: Tensor[(N, 1), float32]) { broadcast_to(%x, shape=[N, 6]) }",
      "%x: Tensor[(N, 6, 2), float32]) { sum(%x, axis=[1]) }",
      "%x: Tensor[(N, 6, 2), float32]) { mean(%x, axis=[0], exclude=True) }",
      "%x: Tensor[(N, 6), float32]) { argmax(%x, axis=[1]) }",
      "%x: Tensor[(N, 6, 2), float32]) { reshape(%x, newshape=[N, 12]) }",
      "%x: Tensor[(N, 6, 2), float32]) { nn.batch_flatten(%x) }",
      "%x: Tensor[(N, 1, 6), float32]) { squeeze(%x, axis=[1]) }",
      "%x: Tensor[(N, 6), float32]) { expand_dims(%x, axis=1) }",
      "%x: Tensor[(N, 6, 2), float32]) { transpose(%x, axes=[0, 2, 1]) }",
      "%x: Tensor[(N, 6), float32], %y: Tensor[(N, 3), float32]) { concatenate((%x, %y), axis=1) }",
      "%x: Tensor[(N, 6), float32], %y: Tensor[(N, 6), float32]) { stack((%x, %y), axis=-1) }",
      "%x: Tensor[(N, 6), float32]) { split(%x, indices_or_sections=2, axis=1).1 }",
      "%x: Tensor[(N, 6), float32]) { strided_slice(%x, begin=[4], end=[0], strides=[-1], axes=[1]) }",
      "%x: Tensor[(N, 6), float32]) { nn.pad(%x, 0f, pad_width=[[0, 0], [1, 2]]) }",
      "%x: Tensor[(N, 6), float32]) { tile(%x, reps=[1, 2]) }",
      "%x: Tensor[(N, 6), float32], %i: Tensor[(2), int64]) { take(%x, %i, axis=1) }",
      "%x: Tensor[(9, 6), float32], %i: Tensor[(N, 2), int64]) { take(%x, %i, axis=0) }",
      "%x: Tensor[(9), float32], %i: Tensor[(N), int64]) { take(%x, %i) }",
      "%x: Tensor[(N, 8), float32], %i: Tensor[(N, 2), int64]) { gather(%x, %i, axis=1) }",
      "%x: Tensor[(N), int64]) { one_hot(%x, 1f, 0f, depth=8) }",
      "%x: Tensor[(N, 6), float32]) { topk(%x, k=2).1 }",
      "%x: Tensor[(N, 6), float32]) { cumsum(%x, axis=1) }",
      "%x: Tensor[(N, 4, 4), float32]) { trilu(%x) }",
      "%x: Tensor[(N, 3, 3), float32]) { linalg.det(%x) }",
      "%x: Tensor[(N, 3, 3), float32]) { linalg.inv(%x) }",
      "%x: Tensor[(N, 2, 5, 5), float32], %g: Tensor[(N, 3, 3, 2), float32]) { image.grid_sample(%x, %g) }",
      ("%x: Tensor[(1, 2, 8, 8), float32], %r: Tensor[(N, 4), float32], %b: Tensor[(N), int64]) {"
       " vision.roi_align(%x, %r, cast(multiply(%b, 0i64), dtype=\"int64\"), pooled_size=[2, 2]) }"),
      "%x: Tensor[(1, 2, 8, 8), float32], %r: Tensor[(N, 5), float32]) { vision.roi_pool(%x, %r, pooled_size=[2, 2]) }",
      "%x: Tensor[(N, 4, 3), float32], %y: Tensor[(N, 3, 2), float32]) { einsum((%x, %y), equation=\"bij,bjk->bik\") }",
      "%x: Tensor[(N, 6), float32]) { qnn.quantize(%x, 0.1f, 0i8) }",
  };
  for (const std::string& body : bodies) {
    SCOPED_TRACE(body);
    const Case one{"fn (" + body};
    const Expr all = one.For(kRows);
    const Expr some = one.For(kBlock);
    EXPECT_EQ(RowUseOfResult(all, one.Uses(), kRows), RowUse::kRows);
    EXPECT_EQ(RowUseOfResult(some, one.Uses(), kBlock), RowUse::kRows);
    ExpectIndependent(all, some, one.Uses());
  }
}

TEST(RowIndependenceTest, WhatMixesRows) {
  const std::vector<std::string> bodies = {
      "%x: Tensor[(N, 6), float32]) { nn.softmax(%x, axis=0) }",
      "%x: Tensor[(N, 6), float32]) { sum(%x, axis=[0]) }",
      "%x: Tensor[(N, 6), float32]) { sum(%x) }",
      "%x: Tensor[(N, 6), float32]) { transpose(%x) }",
      "%x: Tensor[(N, 6), float32]) { cumsum(%x, axis=0) }",
      "%x: Tensor[(N, 6), float32]) { strided_slice(%x, begin=[5], end=[-7], strides=[-1], axes=[0]) }",
      "%x: Tensor[(N, 6), float32]) { concatenate((%x, %x), axis=0) }",
      "%x: Tensor[(N, 6), float32]) { nn.matmul(%x, %x, transpose_a=True) }",
      "%x: Tensor[(N, 6), float32]) { nn.dense(%x, %x) }",
      "%x: Tensor[(6), float32], %y: Tensor[(N), float32]) { add(%x, %y) }",
      "%x: Tensor[(2, 6), float32], %y: Tensor[(N), float32]) { add(%x, %y) }",
      "%x: Tensor[(N), float32], %i: Tensor[(N), int64]) { take(%x, %i, axis=0) }",
      "%x: Tensor[(N, 6), float32], %i: Tensor[(N), int64]) { take(%x, %i, axis=0) }",
      "%x: Tensor[(N, 6), float32]) { expand_dims(%x, axis=0) }",
      "%x: Tensor[(N, 6), float32]) { topk(%x, k=1, axis=0).0 }",
      "%x: Tensor[(N, 3, 2, 2), float32], %g: Tensor[(N), float32]) { nn.batch_norm(%x, %g, %g, %g, %g, axis=0).0 }",
      "%x: Tensor[(N, 2, 2, 2), float32], %w: Tensor[(N, 2, 1, 1), float32]) { nn.conv2d(%x, %w) }",
      "%x: Tensor[(N, N), float32]) { trilu(%x) }",
  };
  for (const std::string& body : bodies) {
    SCOPED_TRACE(body);
    const Case one{"fn (" + body};
    EXPECT_EQ(RowUseOfResult(one.For(kRows), one.Uses(), kRows), RowUse::kNeither);
  }
}

TEST(RowIndependenceTest, WhatHasNoRowsIsWhole) {
  const Case one{"fn (%x: Tensor[(3, 6), float32]) { sum(add(%x, 1f)) }"};
  EXPECT_EQ(RowUseOfResult(one.For(kRows), one.Uses(), kRows), RowUse::kWhole);
}

/// Calls of random operators on random axes, of which those are taken that the table has for both numbers of rows. Extents are often as
/// many as rows, so that chance may mislead.
class RandomRows {
 public:
  explicit RandomRows(uint32_t seed) : random_(seed) {
    for (const int64_t rows : {kRows, kBlock}) {
      const Expr x = MakeVar("x", TensorType{{rows, kRows, kBlock}, DType::kFloat32});
      const Expr whole = MakeVar("w", TensorType{{kRows, kBlock}, DType::kFloat32});
      sides_.push_back({rows, {x, whole}, {x}, whole});
    }
  }

  /// How many of the calls were taken.
  size_t Grow(size_t calls) {
    size_t taken = 0;
    for (size_t i = 0; i < calls; ++i) taken += Add() ? 1 : 0;
    return taken;
  }
  [[nodiscard]] Expr Function(size_t side) const {
    Result<Expr> function = MakeFunction(sides_[side].parameters, MakeTuple(sides_[side].values));
    EXPECT_TRUE(function);
    return *function;
  }

 private:
  struct Side {
    int64_t rows;
    std::vector<Expr> parameters;
    std::vector<Expr> values;  // with rows
    Expr whole;
  };

  size_t Below(size_t bound) { return random_() % bound; }

  bool Add() {
    const size_t a = sides_[0].values.size() - 1 - Below(std::min<size_t>(sides_[0].values.size(), 3));
    const size_t b = Below(sides_[0].values.size());
    const size_t kind = Below(18);
    const int64_t axis = static_cast<int64_t>(Below(4)) - 1;
    std::vector<Expr> made;
    for (const Side& side : sides_) {
      const Result<Expr> call = Make(side, side.values[a], side.values[b], kind, axis);
      if (!call || (*call)->type().AsTensor() == nullptr) return false;
      const TensorType& type = *(*call)->type().AsTensor();
      if (type.dtype != DType::kFloat32 || type.ElementCount() > 5000) return false;
      std::vector<Expr> values = side.values;
      values.push_back(*call);
      const Result<Expr> function = MakeFunction(side.parameters, MakeTuple(values));
      if (!function || RowUseOfResult(*function, std::vector{RowUse::kRows, RowUse::kWhole}, side.rows) != RowUse::kRows) return false;
      made.push_back(*call);
    }
    for (size_t i = 0; i < sides_.size(); ++i) sides_[i].values.push_back(made[i]);
    return true;
  }

  static Result<Expr> Of(const char* op, std::vector<Expr> args, Attributes attributes = {}) {
    return MakeCall(Operators().Find(op), std::move(args), std::move(attributes));
  }

  static Result<Expr> Make(const Side& side, const Expr& x, const Expr& y, size_t kind, int64_t axis) {
    const Shape& shape = x->type().AsTensor()->shape;
    const Ints axes{axis};
    switch (kind) {
      case 0:
        return Of("nn.softmax", {x}, {{"axis", axis}});
      case 1:
        return Of("sum", {x}, {{"axis", axes}, {"keepdims", y == x}});
      case 2:
        return Of("add", {x, y});
      case 3:
        return Of("multiply", {x, side.whole});
      case 4:
        return Of("nn.matmul", {x, side.whole});
      case 5:
        return Of("nn.matmul", {side.whole, x});
      case 6: {
        Ints order(shape.size());
        for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>((i + static_cast<size_t>(axis + 1)) % order.size());
        return Of("transpose", {x}, {{"axes", order}});
      }
      case 7: {
        int64_t rest = 1;
        for (size_t i = 1; i < shape.size(); ++i) rest *= shape[i];
        return Of("reshape", {x}, {{"newshape", axis > 0 ? Ints{side.rows, -1, 2} : Ints{rest, -1}}});
      }
      case 8:
        return Of("concatenate", {MakeTuple({x, y})}, {{"axis", axis}});
      case 9:
        return Of("stack", {MakeTuple({x, x})}, {{"axis", axis}});
      case 10:
        return Of("strided_slice", {x}, {{"begin", Ints{-1}}, {"end", Ints{-100}}, {"strides", Ints{-1}}, {"axes", axes}});
      case 11:
        return Of("cumsum", {x}, {{"axis", axis}});
      case 12:
        return Of("take", {x, MakeConstant(Int64s({3}, {1, 0, 1}))}, {{"axis", axis}});
      case 13:
        return Of("take", {side.whole, MakeConstant(Int64s({2}, {1, 0}))}, {{"axis", axis}});
      case 14:
        return Of("expand_dims", {x}, {{"axis", axis}});
      case 15:
        return Of("max", {x}, {{"axis", axes}, {"exclude", true}});
      case 16:
        return Of("nn.matmul", {x, y}, {{"transpose_b", true}});
      default:
        return Of("squeeze", {x});
    }
  }

  std::mt19937 random_;
  std::vector<Side> sides_;
};

TEST(RowIndependenceTest, RandomProgramsGiveTheSameSomeRowsAtATime) {
  size_t taken = 0;
  for (uint32_t seed = 0; seed < Rounds(300); ++seed) {
    SCOPED_TRACE(seed);
    RandomRows random(seed);
    taken += random.Grow(40);
    ASSERT_NO_FATAL_FAILURE(ExpectIndependent(random.Function(0), random.Function(1), {RowUse::kRows, RowUse::kWhole}));
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, Rounds(300) * 8);  // most of it is no empty program
}

}  // namespace
}  // namespace collage
