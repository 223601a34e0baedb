#include <algorithm>
#include <cstring>

#include "collage/form/rules.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

Pattern WithConstant(const char* op) { return pattern::CallOf(op, {pattern::Wildcard().As("data"), pattern::IsConstant().As("weight")}); }

const Tensor& WeightOf(const Match& match) { return match.Find("weight")->As<Constant>()->value; }

/// Attributes that count or name what the weights say as well.
Attributes WithoutExtents(const Match& match) {
  Attributes attributes = match.root->As<Call>()->attributes;
  for (const char* name : {"channels", "units", "kernel_size"}) attributes.Erase(name);
  return attributes;
}

/// Equal but for the extent of this dimension of the weights.
std::function<bool(const Match&, const Match&)> AlikeBut(size_t dimension) {
  return [dimension](const Match& first, const Match& other) {
    Shape a = WeightOf(first).shape();
    Shape b = WeightOf(other).shape();
    if (a.size() != b.size() || WeightOf(first).dtype() != WeightOf(other).dtype()) return false;
    b[dimension] = a[dimension];
    return a == b && WithoutExtents(first) == WithoutExtents(other);
  };
}

/// One behind the other along a dimension.
Tensor Joined(const std::vector<Match>& matches, size_t dimension) {
  Shape shape = WeightOf(matches.front()).shape();
  shape[dimension] = 0;
  for (const Match& match : matches) shape[dimension] += WeightOf(match).shape()[dimension];
  Tensor joined(TensorType{shape, WeightOf(matches.front()).dtype()});
  size_t row = ByteSize(joined.dtype());
  for (size_t d = dimension; d < shape.size(); ++d) row *= static_cast<size_t>(shape[d]);
  const size_t rows = row == 0 ? 0 : joined.ByteCount() / row;
  size_t begin = 0;
  for (const Match& match : matches) {
    const Tensor& part = WeightOf(match);
    const size_t bytes = rows == 0 ? 0 : part.ByteCount() / rows;
    for (size_t i = 0; i < rows; ++i) std::memcpy(joined.MutableBytes() + i * row + begin, part.Bytes() + i * bytes, bytes);
    begin += bytes;
  }
  return joined;
}

/// One call with all weights, and its result cut along `axis` into those of each.
std::function<Result<std::vector<Expr>>(const std::vector<Match>&)> ToOne(const char* op, size_t dimension, int64_t axis) {
  return [=](const std::vector<Match>& matches) -> Result<std::vector<Expr>> {
    const Expr weight = MakeConstant(Joined(matches, dimension));
    const Expr all = COLLAGE_TRY(CallOp(op, {matches.front().Find("data"), weight}, WithoutExtents(matches.front())));
    std::vector<int64_t> cuts;
    int64_t end = 0;
    for (const Match& match : matches) cuts.push_back(end += WeightOf(match).shape()[dimension]);
    cuts.pop_back();
    const Expr parts = COLLAGE_TRY(CallOp("split", {all}, {{"indices_or_sections", cuts}, {"axis", axis}}));
    std::vector<Expr> results;
    for (size_t i = 0; i < matches.size(); ++i) results.push_back(COLLAGE_TRY(MakeTupleGetItem(parts, i)));
    return results;
  };
}

Verdict IsUngrouped(const Match& match) {
  const bool has_groups = IntAttribute(match.root->As<Call>()->attributes, "groups", 1) != 1;
  return has_groups ? Verdict::Reject("it has groups") : Verdict::Accept();
}

Verdict IsMatrix(const Match& match) {
  const bool is_transposed = BoolAttribute(match.root->As<Call>()->attributes, "transpose_b", false);
  return WeightOf(match).shape().size() == 2 && !is_transposed ? Verdict::Accept() : Verdict::Reject("its constant is no k x n matrix");
}

}  // namespace

FormRule SiblingConvolutionsForm() {
  return {"sibling_convolutions", WithConstant("nn.conv2d"), IsUngrouped, ToOne("nn.conv2d", 0, 1), AlikeBut(0)};
}

FormRule SiblingDensesForm() {
  return {"sibling_denses", WithConstant("nn.dense"), [](const Match&) { return Verdict::Accept(); }, ToOne("nn.dense", 0, -1),
          AlikeBut(0)};
}

FormRule SiblingProductsForm() { return {"sibling_products", WithConstant("nn.matmul"), IsMatrix, ToOne("nn.matmul", 1, -1), AlikeBut(1)}; }

}  // namespace collage
