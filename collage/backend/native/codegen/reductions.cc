#include <cmath>
#include <limits>
#include <memory>

#include "collage/backend/native/codegen/operators.h"
#include "collage/backend/native/codegen/rows.h"
#include "collage/op/reduction.h"
#include "collage/op/rules.h"

namespace collage::native {

using Halide::Expr;

namespace {

using Step = OpSequence::Step;

// A reduction as rows: which axes are outer, reduced and inner, and how many elements each group has.
struct RowView {
  std::vector<size_t> outer_axes, reduced_axes, inner_axes;
  Shape outer_shape, reduced_shape, inner_shape;

  [[nodiscard]] int64_t Outer() const { return ElementCount(outer_shape); }
  [[nodiscard]] int64_t Extent() const { return ElementCount(reduced_shape); }
  [[nodiscard]] int64_t Inner() const { return ElementCount(inner_shape); }

  [[nodiscard]] Index ToIndex(const DimensionIndex& outer, const DimensionIndex& position, const DimensionIndex& inner) const {
    Index index(outer_axes.size() + reduced_axes.size() + inner_axes.size());
    const auto place = [&](const DimensionIndex& from, const std::vector<size_t>& axes, const Shape& shape) {
      const Index parts = Regroup({from}, {ElementCount(shape)}, shape);
      for (size_t i = 0; i < axes.size(); ++i) index[axes[i]] = parts[i];
    };
    place(outer, outer_axes, outer_shape);
    place(position, reduced_axes, reduced_shape);
    place(inner, inner_axes, inner_shape);
    return index;
  }
};

RowView ViewRows(const Shape& shape, const std::vector<bool>& reduced) {
  RowView view;
  bool after_reduced = true;
  for (size_t axis = shape.size(); axis-- > 0;) {
    auto& axes = reduced[axis] ? view.reduced_axes : after_reduced ? view.inner_axes : view.outer_axes;
    auto& extents = reduced[axis] ? view.reduced_shape : after_reduced ? view.inner_shape : view.outer_shape;
    after_reduced = after_reduced && (!reduced[axis] || shape[axis] == 1);
    axes.insert(axes.begin(), axis);
    extents.insert(extents.begin(), shape[axis]);
  }
  return view;
}

void DefineReduction(Emitter& emitter, const Step& step, const RowView& view, const Combiner& combiner,
                     const std::function<Expr(const Expr&)>& finish) {
  const size_t input = step.inputs[0];
  const Halide::Type type = ElementType(emitter.TypeOf(step.outputs[0]).dtype);
  const auto rows =
      std::make_shared<RowReduction>(emitter, "reduction", view.Outer(), view.Extent(), view.Inner(), type, combiner,
                                     [&](const DimensionIndex& outer, const DimensionIndex& position, const DimensionIndex& inner) {
                                       return emitter.At(input, view.ToIndex(outer, position, inner));
                                     });
  const Shape domain = {view.Outer(), view.Inner()};
  Emitter::Anchor anchor;
  anchor.cuts = {view.Inner()};
  anchor.result = emitter.MakeStage(
      "reduced", domain, [&](const Index& index) { return finish(rows->At(ToExpr(index[0]), ToExpr(index[1]))); }, anchor.cuts);
  anchor.fits = [view](const Stage& host) { return FitsRows(host, 1, view.Inner()); };
  const double cost = static_cast<double>(ElementCount(emitter.ShapeOf(input))) / emitter.VectorLanes(type) * (rows->element_cost() + 0.5);
  anchor.schedule = [&emitter, rows, view, cost](Stage& host) { ScheduleRows(emitter, host, {1, view.Inner(), {rows.get()}, {}}, cost); };
  emitter.DefineAnchor(step.outputs[0], std::move(anchor));
}

Combiner MinimumOf(Halide::Type type) {
  const Expr initial = type.is_float() ? Expr(Halide::Internal::FloatImm::make(type, std::numeric_limits<double>::infinity())) : type.max();
  return {Minimum, initial, false};
}

Combiner ProductOf(Halide::Type type) {
  return {[](const Expr& a, const Expr& b) { return a * b; }, Halide::Internal::make_one(type), false};
}

template <auto combiner_of>
Status Reduce(Emitter& emitter, const Step& step) {
  const Reduction reduction = COLLAGE_TRY(ReadReduction(emitter.TypeOf(step.inputs[0]), step.attributes));
  const Halide::Type type = ElementType(emitter.TypeOf(step.outputs[0]).dtype);
  DefineReduction(emitter, step, ViewRows(emitter.ShapeOf(step.inputs[0]), reduction.reduced), combiner_of(type),
                  [](const Expr& x) { return x; });
  return {};
}

Status EmitMean(Emitter& emitter, const Step& step) {
  const Reduction reduction = COLLAGE_TRY(ReadReduction(emitter.TypeOf(step.inputs[0]), step.attributes));
  const RowView view = ViewRows(emitter.ShapeOf(step.inputs[0]), reduction.reduced);
  const DType dtype = emitter.TypeOf(step.outputs[0]).dtype;
  const double factor = 1.0 / static_cast<double>(view.Extent());
  DefineReduction(emitter, step, view, SumOf(ElementType(dtype)), [&](const Expr& sum) { return sum * Immediate(factor, dtype); });
  return {};
}

template <auto combiner_of, bool mean>
Status GlobalPool(Emitter& emitter, const Step& step) {
  const RowView view = ViewRows(emitter.ShapeOf(step.inputs[0]), {false, false, true, true});
  const DType dtype = emitter.TypeOf(step.outputs[0]).dtype;
  const double factor = 1.0 / static_cast<double>(view.Extent());
  DefineReduction(emitter, step, view, combiner_of(ElementType(dtype)),
                  [&](const Expr& value) { return mean ? value * Immediate(factor, dtype) : value; });
  return {};
}

// argmax and argmin: a pair of the best element and its place.
template <bool largest>
Status ArgReduce(Emitter& emitter, const Step& step) {
  const size_t input = step.inputs[0];
  const Reduction reduction = COLLAGE_TRY(ReadReduction(emitter.TypeOf(input), step.attributes));
  const bool last_wins = BoolAttribute(step.attributes, "select_last_index", false);
  const RowView view = ViewRows(emitter.ShapeOf(input), reduction.reduced);
  Halide::Var o("outer"), i("inner");
  Halide::Func best("best");
  Loop* outer = emitter.NewLoop(o, view.Outer());
  Loop* inner = emitter.NewLoop(i, view.Inner());
  const auto whole = [](Loop* loop) { return loop->extent == 1 ? DimensionIndex{} : DimensionIndex{{{loop, 1, loop->extent, {}}}, 0}; };
  best(i, o) = Halide::Tuple(emitter.Evaluate([&] { return emitter.At(input, view.ToIndex(whole(outer), {}, whole(inner))); }),
                             Halide::cast<int32_t>(0));
  if (view.Extent() > 1) {
    Halide::RDom rest(1, static_cast<int>(view.Extent() - 1));
    const Expr value = emitter.Evaluate(
        [&] { return emitter.At(input, view.ToIndex(whole(outer), whole(emitter.NewLoop(rest.x, view.Extent())), whole(inner))); });
    const Expr held = best(i, o)[0];
    const Expr better = largest ? (last_wins ? value >= held : value > held) : (last_wins ? value <= held : value < held);
    best(i, o) = Halide::Tuple(Halide::select(better, value, held), Halide::select(better, rest.x, best(i, o)[1]));
    best.update(0).reorder(i, rest.x);
  }
  best.compute_root();
  const int lanes = emitter.VectorLanes(best.types()[0]);
  if (view.Inner() >= lanes) {
    best.vectorize(i, lanes, Halide::TailStrategy::GuardWithIf);
    if (view.Extent() > 1) best.update(0).vectorize(i, lanes, Halide::TailStrategy::GuardWithIf);
  }
  const size_t output = step.outputs[0];
  emitter.Define(output, [&emitter, best, view, output](const Index& index) mutable {
    const Index parts = Regroup(index, emitter.ShapeOf(output), {view.Outer(), view.Inner()});
    return Halide::cast<int64_t>(Expr(best(ToExpr(parts[1]), ToExpr(parts[0]))[1]));
  });
  return {};
}

}  // namespace

void AddReductions(EmitTable& table) {
  table["sum"] = Reduce<SumOf>;
  table["max"] = Reduce<MaximumOf>;
  table["min"] = Reduce<MinimumOf>;
  table["prod"] = Reduce<ProductOf>;
  table["mean"] = EmitMean;
  table["argmax"] = ArgReduce<true>;
  table["argmin"] = ArgReduce<false>;
  table["nn.global_avg_pool2d"] = GlobalPool<SumOf, true>;
  table["nn.global_max_pool2d"] = GlobalPool<MaximumOf, false>;
}

}  // namespace collage::native
