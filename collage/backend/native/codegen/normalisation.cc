#include <memory>

#include "collage/backend/native/codegen/operators.h"
#include "collage/backend/native/codegen/rows.h"
#include "collage/op/axis_view.h"
#include "collage/op/rules.h"

namespace collage::native {

using Halide::Expr;
using Halide::Func;
using Halide::Var;

namespace {

using Step = OpSequence::Step;

// The input of a normalisation as [outer, extent, inner].
struct Rows {
  Emitter* emitter;
  size_t input;
  int64_t outer, extent, inner;
  Halide::Type type;

  Rows(Emitter& e, size_t value, int64_t outer_count, int64_t row_extent, int64_t inner_count)
      : emitter(&e), input(value), outer(outer_count), extent(row_extent), inner(inner_count), type(ElementType(e.TypeOf(value).dtype)) {}

  [[nodiscard]] Index ToIndex(const DimensionIndex& o, const DimensionIndex& x, const DimensionIndex& i) const {
    return Regroup({o, x, i}, {outer, extent, inner}, emitter->ShapeOf(input));
  }
  [[nodiscard]] Expr At(const DimensionIndex& o, const DimensionIndex& x, const DimensionIndex& i) const {
    return emitter->At(input, ToIndex(o, x, i));
  }
  [[nodiscard]] RowReduction Reduce(const std::string& name, const Combiner& combiner, const RowReduction::Body& body) const {
    return RowReduction(*emitter, name, outer, extent, inner, type, combiner, body);
  }
  [[nodiscard]] double Cost(double per_vector) const {
    return static_cast<double>(outer * extent * inner) / emitter->VectorLanes(type) * per_vector;
  }
};

using Reductions = std::vector<std::shared_ptr<RowReduction>>;

void DefineRows(const Rows& rows, size_t output, const Emitter::Body& body, const Reductions& reductions, const std::vector<Func>& kept,
                double cost) {
  Emitter& emitter = *rows.emitter;
  Emitter::Anchor anchor;
  anchor.cuts = {rows.inner, rows.inner * rows.extent};
  anchor.result = emitter.MakeStage("normalised", {rows.outer, rows.extent, rows.inner}, body, anchor.cuts);
  anchor.fits = [rows](const Stage& host) { return FitsRows(host, rows.extent, rows.inner); };
  anchor.schedule = [&emitter, rows, reductions, kept, cost](Stage& host) {
    RowHelpers helpers{rows.extent, rows.inner, {}, kept};
    for (const auto& reduction : reductions) helpers.reductions.push_back(reduction.get());
    ScheduleRows(emitter, host, helpers, cost);
  };
  emitter.DefineAnchor(output, std::move(anchor));
}

DimensionIndex Whole(Loop* loop) { return loop->extent == 1 ? DimensionIndex{} : DimensionIndex{{{loop, 1, loop->extent, {}}}, 0}; }

template <bool logarithm>
Status EmitSoftmax(Emitter& emitter, const Step& step) {
  const AxisView view(emitter.ShapeOf(step.inputs[0]), AxisAttribute(step.attributes, "axis", -1, emitter.ShapeOf(step.inputs[0]).size()));
  const Rows rows(emitter, step.inputs[0], view.outer, view.extent, view.inner);
  const auto element = [rows](const DimensionIndex& o, const DimensionIndex& x, const DimensionIndex& i) { return rows.At(o, x, i); };
  const auto largest = std::make_shared<RowReduction>(rows.Reduce("largest", MaximumOf(rows.type), element));
  // The exponentials are kept: they are wanted twice, and cost more than anything else here.
  Var o("outer"), x("position"), i("inner");
  Func exponential("exponential");
  const Expr kept = emitter.Evaluate([&] {
    return rows.At(Whole(emitter.NewLoop(o, rows.outer)), Whole(emitter.NewLoop(x, rows.extent)), Whole(emitter.NewLoop(i, rows.inner)));
  });
  exponential(i, x, o) = Halide::exp(kept - largest->At(o, i));
  const auto sum = std::make_shared<RowReduction>(
      rows.Reduce("sum", SumOf(rows.type), [&](const DimensionIndex& outer, const DimensionIndex& position, const DimensionIndex& inner) {
        return exponential(ToExpr(inner), ToExpr(position), ToExpr(outer));
      }));
  Func last("scale");
  const Expr total = sum->At(o, i);
  last(i, o) = logarithm ? largest->At(o, i) + Halide::log(total) : 1 / total;
  const auto body = [&](const Index& index) -> Expr {
    const Expr outer = ToExpr(index[0]);
    const Expr inner = ToExpr(index[2]);
    if (logarithm) return rows.At(index[0], index[1], index[2]) - last(inner, outer);
    return exponential(inner, ToExpr(index[1]), outer) * last(inner, outer);
  };
  constexpr double kNanosecondsPerVector = 12;
  DefineRows(rows, step.outputs[0], body, {largest, sum}, {exponential, last}, rows.Cost(kNanosecondsPerVector));
  return {};
}

// Mean and variance along the rows, then gamma and beta; `channel` gives the place of an element in them.
Status EmitMoments(Emitter& emitter, const Step& step, const Rows& rows, const std::function<DimensionIndex(const Index&)>& channel) {
  const DType dtype = emitter.TypeOf(rows.input).dtype;
  const bool center = BoolAttribute(step.attributes, "center", true);
  const bool scale = BoolAttribute(step.attributes, "scale", true);
  const Expr share = Immediate(1.0 / static_cast<double>(rows.extent), dtype);
  const Expr epsilon = Immediate(DoubleAttribute(step.attributes, "epsilon", 1e-5), dtype);
  const auto sum = std::make_shared<RowReduction>(
      rows.Reduce("sum", SumOf(rows.type),
                  [&](const DimensionIndex& o, const DimensionIndex& x, const DimensionIndex& i) { return rows.At(o, x, i); }));
  Var o("outer"), i("inner");
  Func mean("mean");
  mean(i, o) = sum->At(o, i) * share;
  const auto squares = std::make_shared<RowReduction>(
      rows.Reduce("squares", SumOf(rows.type), [&](const DimensionIndex& outer, const DimensionIndex& x, const DimensionIndex& inner) {
        const Expr distance = rows.At(outer, x, inner) - mean(ToExpr(inner), ToExpr(outer));
        return distance * distance;
      }));
  Func factor("factor");
  factor(i, o) = 1 / Halide::sqrt(squares->At(o, i) * share + epsilon);
  const size_t gamma = step.inputs[1];
  const size_t beta = step.inputs[2];
  const auto body = [&](const Index& index) -> Expr {
    const Expr outer = ToExpr(index[0]);
    const Expr inner = ToExpr(index[2]);
    const Index at = {channel(rows.ToIndex(index[0], index[1], index[2]))};
    Expr value = (rows.At(index[0], index[1], index[2]) - mean(inner, outer)) * factor(inner, outer);
    if (scale) value = value * emitter.At(gamma, at);
    return center ? value + emitter.At(beta, at) : value;
  };
  constexpr double kNanosecondsPerVector = 4;
  DefineRows(rows, step.outputs[0], body, {sum, squares}, {mean, factor}, rows.Cost(kNanosecondsPerVector));
  return {};
}

Status EmitLayerNorm(Emitter& emitter, const Step& step) {
  const Shape& shape = emitter.ShapeOf(step.inputs[0]);
  const size_t axis = AxisAttribute(step.attributes, "axis", -1, shape.size());
  const AxisView view(shape, axis);
  return EmitMoments(emitter, step, Rows(emitter, step.inputs[0], view.outer, view.extent, view.inner),
                     [axis](const Index& index) { return index[axis]; });
}

Status EmitGroups(Emitter& emitter, const Step& step, int64_t groups) {
  const Shape& shape = emitter.ShapeOf(step.inputs[0]);
  if (AxisAttribute(step.attributes, "axis", 1, shape.size()) != 1) return Fail("channels in another dimension than the second");
  const int64_t outer = shape[0] * groups;
  return EmitMoments(emitter, step, Rows(emitter, step.inputs[0], outer, ElementCount(shape) / outer, 1),
                     [](const Index& index) { return index[1]; });
}

Status EmitInstanceNorm(Emitter& emitter, const Step& step) { return EmitGroups(emitter, step, emitter.ShapeOf(step.inputs[0])[1]); }
Status EmitGroupNorm(Emitter& emitter, const Step& step) {
  return EmitGroups(emitter, step, IntAttribute(step.attributes, "num_groups", 1));
}

Expr PowerOfScale(const Expr& value, double beta) {
  if (beta == 0.75) return 1 / (Halide::sqrt(value) * Halide::sqrt(Halide::sqrt(value)));
  if (beta == 0.5) return 1 / Halide::sqrt(value);
  if (beta == 1) return 1 / value;
  return Halide::exp(Halide::log(value) * Halide::Internal::FloatImm::make(value.type(), -beta));
}

Status EmitLrn(Emitter& emitter, const Step& step) {
  const size_t input = step.inputs[0];
  const size_t axis = AxisAttribute(step.attributes, "axis", 1, emitter.ShapeOf(input).size());
  const DType dtype = emitter.TypeOf(input).dtype;
  const int64_t size = IntAttribute(step.attributes, "size", 5);
  const double alpha = DoubleAttribute(step.attributes, "alpha", 1e-5) / static_cast<double>(size);
  const double beta = DoubleAttribute(step.attributes, "beta", 0.75);
  const double bias = DoubleAttribute(step.attributes, "bias", 2);
  emitter.Define(step.outputs[0], [&emitter, input, axis, dtype, size, alpha, beta, bias](const Index& index) {
    const auto extent = emitter.ShapeOf(input)[axis];
    const Expr channel = ToExpr(index[axis]);
    Expr squares = Immediate(0, dtype);
    for (int64_t tap = -((size - 1) / 2); tap <= size / 2; ++tap) {
      const Expr at = channel + static_cast<int>(tap);
      Index source = index;
      source[axis] = Opaque(Halide::clamp(at, 0, static_cast<int>(extent - 1)), extent);
      const Expr neighbour = emitter.At(input, source);
      squares = squares + Halide::select(at >= 0 && at < static_cast<int>(extent), neighbour * neighbour, Immediate(0, dtype));
    }
    return emitter.At(input, index) * PowerOfScale(Immediate(bias, dtype) + Immediate(alpha, dtype) * squares, beta);
  });
  return {};
}

}  // namespace

void AddNormalisation(EmitTable& table) {
  table["nn.softmax"] = EmitSoftmax<false>;
  table["nn.log_softmax"] = EmitSoftmax<true>;
  table["nn.layer_norm"] = EmitLayerNorm;
  table["nn.instance_norm"] = EmitInstanceNorm;
  table["nn.group_norm"] = EmitGroupNorm;
  table["nn.lrn"] = EmitLrn;
}

}  // namespace collage::native
