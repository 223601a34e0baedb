#include "collage/op/col2im.h"

#include "collage/backend/native/codegen/operators.h"
#include "collage/backend/native/codegen/planes.h"
#include "collage/op/index_walk.h"

namespace collage::native {

using Halide::clamp;
using Halide::Expr;
using Halide::select;
using Halide::Var;

namespace {

using Step = OpSequence::Step;

int Int(int64_t value) { return static_cast<int>(value); }

/// A place along one dimension of the blocks, and whether there is one.
struct Met {
  Expr tap;
  Expr block;
  Expr is_none;  ///< undefined where there always is one

  void NoneIf(const Expr& condition) { is_none = is_none.defined() ? is_none || condition : condition; }
};

/// Of those that meet the element at `at` the one of this number.
Met MetAlong(const Col2Im& c, size_t d, const Expr& at, int64_t number) {
  const TapsAlong taps(c, d);
  Met met;
  const Expr place = at + Int(c.pad_begin[d]);
  met.tap = place % Int(c.stride[d]) / Int(taps.divisor) * Int(taps.factor) % Int(taps.step) + Int(number * taps.step);
  if (taps.divisor > 1) met.NoneIf(place % Int(taps.divisor) != 0);
  if ((number + 1) * taps.step > c.kernel[d]) {
    met.NoneIf(met.tap >= Int(c.kernel[d]));
    met.tap = Halide::min(met.tap, Int(c.kernel[d] - 1));
  }
  const Expr block = (place - met.tap * Int(c.dilation[d])) / Int(c.stride[d]);
  const int64_t last = c.blocks[d] - 1;
  const bool may_be_before = c.pad_begin[d] < (c.kernel[d] - 1) * c.dilation[d];
  const bool may_be_behind = (c.image[d] - 1 + c.pad_begin[d] - number * taps.step * c.dilation[d]) / c.stride[d] > last;
  if (may_be_before) met.NoneIf(block < 0);
  if (may_be_behind) met.NoneIf(block > Int(last));
  met.block = may_be_before || may_be_behind ? clamp(Halide::likely(block), 0, Int(last)) : block;
  return met;
}

/// The sum of all that meets an element, so that nothing is added into memory.
Expr SumAt(Emitter& emitter, size_t input, const Col2Im& c, const Index& index) {
  const Shape& shape = emitter.ShapeOf(input);
  const Index plane = Regroup({index[0]}, {c.batch * c.channels}, {c.batch, c.channels});
  Shape numbers;
  for (size_t d = 0; d < c.image.size(); ++d) numbers.push_back(TapsAlong(c, d).most);
  Expr sum;
  for (IndexWalk walk(numbers); walk.Valid(); walk.Next()) {
    Expr tap = ToExpr(plane[1]);
    Expr block = 0;
    Expr is_none;
    for (size_t d = 0; d < c.image.size(); ++d) {
      const Met met = MetAlong(c, d, ToExpr(index[1 + d]), walk[d]);
      tap = tap * Int(c.kernel[d]) + met.tap;
      block = block * Int(c.blocks[d]) + met.block;
      if (met.is_none.defined()) is_none = is_none.defined() ? is_none || met.is_none : met.is_none;
    }
    Expr element = emitter.At(input, {plane[0], Opaque(tap, shape[1]), Opaque(block, shape[2])});
    if (is_none.defined()) element = select(is_none, Halide::cast(element.type(), 0), Halide::likely(element));
    sum = sum.defined() ? sum + element : element;
  }
  return sum;
}

/// With a stride, neighbours are sums of different taps, and what lies side by side in memory is that many elements apart. So a vector is
/// of every stride-th element, and those of all phases are interleaved when they are stored.
void ScheduleRow(Halide::Func& row, const Var& column, int64_t extent, int64_t stride, int lanes) {
  constexpr int64_t kMostPhases = 8;  // each is code of its own
  if (stride == 1 || stride > kMostPhases || extent < 2 * stride) {
    VectoriseRow(row, column, extent, lanes);
    return;
  }
  Var position("position");
  Var phase("phase");
  const bool is_whole = extent % stride == 0;
  row.split(column, position, phase, Int(stride), is_whole ? Halide::TailStrategy::Auto : Halide::TailStrategy::GuardWithIf)
      .reorder(position, phase)
      .unroll(phase);
  const std::optional<Var> outer = VectoriseRow(row, position, (extent + stride - 1) / stride, lanes);
  if (outer) row.reorder(phase, *outer);
}

Status EmitCol2Im(Emitter& emitter, const Step& step) {
  const size_t input = step.inputs[0];
  const Col2Im c = COLLAGE_TRY(ReadCol2Im(emitter.TypeOf(input), step.attributes));
  Shape domain{c.batch * c.channels};
  domain.insert(domain.end(), c.image.begin(), c.image.end());
  const int64_t width = c.image.back();
  const std::vector<int64_t> strides = RowMajorStrides(domain);
  Emitter::Anchor anchor;
  anchor.cuts.insert(strides.begin(), strides.end());
  anchor.result = emitter.MakeStage(
      "col2im", domain, [&](const Index& index) { return SumAt(emitter, input, c, index); }, anchor.cuts);
  anchor.fits = [width](const Stage& host) { return host.LoopsOf(width) == host.loops.size() - (width > 1 ? 1 : 0); };
  anchor.schedule = [&emitter, c, width, cost = anchor.result.cost](Stage& host) {
    const size_t inside = *host.LoopsOf(width);
    emitter.ParallelOuter(host, inside, cost);
    if (inside == host.loops.size()) return;
    ScheduleRow(host.func, host.vars.back(), width, c.stride.back(), emitter.VectorLanes(host.func.types()[0]));
  };
  emitter.DefineAnchor(step.outputs[0], std::move(anchor));
  return {};
}

}  // namespace

void AddCol2Im(EmitTable& table) { table["nn.col2im"] = EmitCol2Im; }

}  // namespace collage::native
