#include "collage/backend/native/codegen/planes.h"

namespace collage::native {

using Halide::Expr;
using Halide::Func;
using Halide::Var;

WindowedInput::WindowedInput(Emitter& emitter, size_t value, std::array<int64_t, 2> input, std::array<int64_t, 2> output,
                             const Window& window, Expr fill)
    : emitter_(emitter), value_(value), input_(input), output_(output), window_(window) {
  for (size_t d = 0; d < 2; ++d) {
    const int64_t last = (output[d] - 1) * window.stride[d] - window.pad_begin[d] + window.Span(d) - 1;
    padded_ = padded_ || window.pad_begin[d] > 0 || last >= input[d];
  }
  if (!padded_) return;
  const Expr y = y_ - static_cast<int>(window.pad_begin[0]);
  const Expr x = x_ - static_cast<int>(window.pad_begin[1]);
  const int bottom = static_cast<int>(input[0] - 1);
  const int right = static_cast<int>(input[1] - 1);
  const Expr element = emitter.Evaluate(
      [&] { return Load(plane_, Halide::clamp(Halide::likely(y), 0, bottom), Halide::clamp(Halide::likely(x), 0, right)); });
  copy_(x_, y_, plane_) = Halide::select(y < 0 || y > bottom || x < 0 || x > right, std::move(fill), Halide::likely(element));
}

Expr WindowedInput::Load(const Expr& plane, const Expr& y, const Expr& x) const {
  const Shape& shape = emitter_.ShapeOf(value_);
  const Index index = {Opaque(plane, shape[0] * shape[1]), Opaque(y, shape[2]), Opaque(x, shape[3])};
  const Index parts = Regroup({index[0]}, {shape[0] * shape[1]}, {shape[0], shape[1]});
  return emitter_.At(value_, {parts[0], parts[1], index[1], index[2]});
}

Expr WindowedInput::At(const Expr& plane, const Expr& y, const Expr& x, int64_t ky, int64_t kx) const {
  const Expr row = y * static_cast<int>(window_.stride[0]) + static_cast<int>(ky * window_.dilation[0]);
  const Expr column = x * static_cast<int>(window_.stride[1]) + static_cast<int>(kx * window_.dilation[1]);
  return padded_ ? copy_(column, row, plane) : Load(plane, row, column);
}

void WindowedInput::ComputeAt(Func& host, const std::optional<Var>& at) {
  if (!padded_) return;
  if (at) {
    copy_.compute_at(host, *at);
  } else {
    copy_.compute_root();
  }
  const int lanes = emitter_.VectorLanes(copy_.types()[0]);
  if (input_[1] + window_.pad_begin[1] >= lanes) copy_.vectorize(x_, lanes, Halide::TailStrategy::RoundUp);
}

std::optional<Var> VectoriseRow(Func& func, const Var& row, int64_t extent, int lanes) {
  if (extent < lanes) {
    if (extent > 1) func.vectorize(row);
    return std::nullopt;
  }
  Var vector("vector");
  func.split(row, row, vector, lanes, Halide::TailStrategy::ShiftInwards).vectorize(vector);
  return row;
}

void DefinePlanes(Emitter& emitter, size_t output, const std::shared_ptr<WindowedInput>& input, std::array<int64_t, 2> extents, double taps,
                  const PlaneBody& body) {
  const Shape& shape = emitter.ShapeOf(output);
  const int64_t planes = shape[0] * shape[1];
  const int64_t plane = extents[0] * extents[1];
  Emitter::Anchor anchor;
  anchor.cuts = {extents[1], plane};
  anchor.result = emitter.MakeStage(
      "planes", {planes, extents[0], extents[1]},
      [&](const Index& index) { return body(ToExpr(index[0]), ToExpr(index[1]), ToExpr(index[2])); }, anchor.cuts);
  anchor.fits = [plane](const Stage& host) { return host.LoopsOf(plane).has_value(); };
  const int lanes = emitter.VectorLanes(anchor.result.func.types()[0]);
  const int64_t rows_of_lanes = (extents[1] + lanes - 1) / lanes;
  const double vectors = static_cast<double>(planes * extents[0]) * static_cast<double>(rows_of_lanes);
  const double cost = vectors * (1 + 0.6 * taps);
  anchor.schedule = [&emitter, input, plane, cost, lanes](Stage& host) {
    const size_t inside = *host.LoopsOf(plane);
    const std::optional<Var> at = emitter.ParallelOuter(host, inside, cost);
    input->ComputeAt(host.func, at);
    if (inside == host.loops.size()) return;
    VectoriseRow(host.func, host.vars.back(), host.loops.back()->extent, lanes);
  };
  emitter.DefineAnchor(output, std::move(anchor));
}

}  // namespace collage::native
