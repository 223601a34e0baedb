#include "collage/backend/native/codegen/rows.h"

#include <algorithm>
#include <limits>

namespace collage::native {

using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::Var;

Combiner SumOf(Halide::Type type) {
  return {[](const Expr& a, const Expr& b) { return a + b; }, Halide::Internal::make_zero(type), true};
}

Combiner MaximumOf(Halide::Type type) {
  return {Maximum, type.is_float() ? Expr(Halide::Internal::FloatImm::make(type, -std::numeric_limits<double>::infinity())) : type.min(),
          false};
}

namespace {

DimensionIndex Whole(Loop* loop) { return loop->extent == 1 ? DimensionIndex{} : DimensionIndex{{{loop, 1, loop->extent, {}}}, 0}; }

// An element that does not depend on the position (all are equal) must still be met once for each position.
Expr Iterated(const Expr& element, const Halide::RVar& position, const Expr& initial) {
  if (Halide::Internal::expr_uses_var(element, position.name())) return element;
  return Halide::select(position >= 0, element, initial);
}

}  // namespace

RowReduction::RowReduction(Emitter& emitter, const std::string& name, int64_t outer, int64_t extent, int64_t inner, Halide::Type type,
                           const Combiner& combiner, const Body& body)
    : outer_(outer), extent_(extent), inner_(inner), lanes_(emitter.VectorLanes(type)), result_(name), lanes_sum_(name + "_lanes") {
  result_(i_, o_) = combiner.initial;
  has_lanes_ = inner == 1 && extent >= lanes_;
  if (has_lanes_) AddLanes(emitter, combiner, body);
  const int64_t begin = has_lanes_ ? extent / lanes_ * lanes_ : 0;
  if (begin < extent) AddSerial(emitter, combiner, body, begin);
}

void RowReduction::AddLanes(Emitter& emitter, const Combiner& combiner, const Body& body) {
  const int vectors = static_cast<int>(extent_ / lanes_);
  // Several vectors a step hide the latency of the joining instruction.
  int at_once = 4;
  while (vectors % at_once != 0) at_once /= 2;
  Func partial(result_.name() + "_vectors");
  RDom steps(0, vectors / at_once);
  Var w("wide");
  Loop* o = emitter.NewLoop(o_, outer_);
  Loop* x = emitter.NewLoop(steps.x * (lanes_ * at_once) + w, extent_);
  partial(w, o_) = combiner.initial;
  const Expr element = emitter.Evaluate([&] { return body(Whole(o), Whole(x), {}); });
  element_cost_ = ExpressionCost(element);
  partial(w, o_) = combiner.join(partial(w, o_), Iterated(element, steps.x, combiner.initial));
  partial.bound_extent(w, lanes_ * at_once).vectorize(w, lanes_).unroll(w);
  partial.update(0).reorder(w, steps.x).vectorize(w, lanes_).unroll(w);
  Expr joined = partial(u_, o_);
  for (int i = 1; i < at_once; ++i) joined = combiner.join(joined, partial(u_ + i * lanes_, o_));
  lanes_sum_(u_, o_) = joined;
  partial.compute_at(lanes_sum_, o_);
  RDom lane(0, lanes_);
  result_(i_, o_) = combiner.join(result_(i_, o_), lanes_sum_(lane.x, o_));
  if (combiner.is_sum) result_.update(updates_).atomic().vectorize(lane.x);
  ++updates_;
}

void RowReduction::AddSerial(Emitter& emitter, const Combiner& combiner, const Body& body, int64_t begin) {
  RDom rest(0, static_cast<int>(extent_ - begin));
  Loop* o = emitter.NewLoop(o_, outer_);
  Loop* i = emitter.NewLoop(i_, inner_);
  Loop* x = emitter.NewLoop(rest.x + static_cast<int>(begin), extent_);
  const Expr element = emitter.Evaluate([&] { return body(Whole(o), Whole(x), Whole(i)); });
  element_cost_ = ExpressionCost(element);
  result_(i_, o_) = combiner.join(result_(i_, o_), Iterated(element, rest.x, combiner.initial));
  if (inner_ > 1) result_.update(updates_).reorder(i_, rest.x);
  ++updates_;
}

void RowReduction::ComputeAt(Func& host, const std::optional<Var>& at) {
  if (at) {
    result_.compute_at(host, *at);
  } else {
    result_.compute_root();
  }
  if (has_lanes_) lanes_sum_.compute_at(result_, o_).bound_extent(u_, lanes_).vectorize(u_);
  if (inner_ >= lanes_) {
    result_.vectorize(i_, lanes_, Halide::TailStrategy::GuardWithIf);
    for (int i = 0; i < updates_; ++i) result_.update(i).vectorize(i_, lanes_, Halide::TailStrategy::GuardWithIf);
  }
}

bool FitsRows(const Stage& host, int64_t extent, int64_t inner) {
  const std::optional<size_t> inner_at = host.LoopsOf(inner);
  if (!inner_at || !host.LoopsOf(inner * extent)) return false;
  return inner == 1 || host.loops.size() - *inner_at == 1;
}

void ScheduleRows(Emitter& emitter, Stage& host, const RowHelpers& helpers, double cost) {
  const size_t row_at = *host.LoopsOf(helpers.inner * helpers.extent);
  const size_t inner_at = *host.LoopsOf(helpers.inner);
  const int lanes = emitter.VectorLanes(host.func.types()[0]);
  std::optional<Var> at = emitter.ParallelOuter(host, row_at, cost);
  Var vector("vector");
  Var innermost = host.vars.back();
  if (helpers.inner == 1) {
    if (row_at < host.loops.size() && host.loops.back()->extent >= lanes)
      host.func.split(innermost, innermost, vector, lanes, Halide::TailStrategy::ShiftInwards).vectorize(vector);
  } else if (helpers.inner >= lanes) {
    // A few vectors of neighbouring rows go through their rows together; their results stay in registers.
    const int width = helpers.inner >= int64_t{2} * lanes ? 2 * lanes : lanes;
    Var tile("tile");
    host.func.split(innermost, tile, vector, width, Halide::TailStrategy::ShiftInwards).vectorize(vector, lanes);
    std::vector<Halide::VarOrRVar> order = {vector};
    for (size_t i = inner_at; i-- > row_at;) order.emplace_back(host.vars[i]);
    order.emplace_back(tile);
    host.func.reorder(order);
    constexpr double kWorthThreads = 8000;
    if (!at && emitter.Parallel() && cost > kWorthThreads) host.func.parallel(tile);
    at = tile;
  }
  for (RowReduction* reduction : helpers.reductions) reduction->ComputeAt(host.func, at);
  for (Func row : helpers.rows) {
    if (at) {
      row.compute_at(host.func, *at);
    } else {
      row.compute_root();
    }
    // Shifted inwards: rounded up, the last vector would read beyond the row, and in the last row beyond the data.
    const bool along_row = helpers.inner == 1;
    if (along_row && row.dimensions() < 3) continue;
    const Var along = row.args()[along_row ? 1 : 0];
    if ((along_row ? helpers.extent : helpers.inner) >= lanes) row.vectorize(along, lanes, Halide::TailStrategy::ShiftInwards);
  }
}

}  // namespace collage::native
