#include "collage/backend/native/codegen/operators.h"
#include "collage/backend/native/codegen/planes.h"
#include "collage/backend/native/codegen/product.h"
#include "collage/op/window.h"

namespace collage::native {

using Halide::clamp;
using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::select;
using Halide::Var;

namespace {

using Step = OpSequence::Step;

int Int(int64_t value) { return static_cast<int>(value); }

// One input channel for each output channel (or a few): planes by themselves.
void DefineDepthwise(Emitter& emitter, const Step& step, const Convolution& c) {
  const auto input = std::make_shared<WindowedInput>(emitter, step.inputs[0], c.input, c.output, c.window, Expr(0.0f));
  const size_t weight = step.inputs[1];
  const int multiplier = Int(c.output_channels / c.groups);
  DefinePlanes(emitter, step.outputs[0], input, c.output, static_cast<double>(c.window.kernel[0] * c.window.kernel[1]),
               [&](const Expr& plane, const Expr& y, const Expr& x) {
                 const Expr channel = c.batch == 1 ? plane : plane % Int(c.output_channels);
                 Expr sum;
                 for (int64_t ky = 0; ky < c.window.kernel[0]; ++ky) {
                   for (int64_t kx = 0; kx < c.window.kernel[1]; ++kx) {
                     const Index tap = {Opaque(channel, c.output_channels), {}, {{}, ky}, {{}, kx}};
                     const Expr term = emitter.At(weight, tap) * input->At(multiplier == 1 ? plane : plane / multiplier, y, x, ky, kx);
                     sum = sum.defined() ? sum + term : term;
                   }
                 }
                 return sum;
               });
}

// The data as rows that follow each other without gaps, so that a vector may run over the end of a row: padded, and for a
// stride s cut into s * s planes in which neighbours are neighbours. Positions are flat within a plane.
struct FlatInput {
  int64_t pitch = 0;   ///< elements from row to row
  int64_t height = 0;  ///< rows of a plane
  std::function<Expr(const Expr& batch, const Expr& channel, const Expr& phase, const Expr& position)> at;
};

bool IsParameter(const Emitter& emitter, size_t value) {
  for (size_t parameter : emitter.sequence().parameters) {
    if (parameter == value) return true;
  }
  return false;
}

struct Extent {
  int64_t begin;  ///< first row (or column) of the data that is needed, negative in the padding
  int64_t count;
  int64_t stride;
};

// `width` is that of the output: where it is less than the pitch, vectors run over the ends of rows and, in the last one, over
// the end of the data, which only a copy allows.
FlatInput MakeFlatInput(Emitter& emitter, size_t value, const Extent& rows, const Extent& columns, int64_t width) {
  const Shape shape = emitter.ShapeOf(value);
  FlatInput flat;
  flat.height = (rows.count + rows.stride - 1) / rows.stride;
  flat.pitch = (columns.count + columns.stride - 1) / columns.stride;
  const int64_t plane = flat.height * flat.pitch;
  const bool same = rows.stride == 1 && columns.stride == 1 && rows.begin == 0 && columns.begin == 0 && rows.count == shape[2] &&
                    columns.count == shape[3];
  if (same && width == flat.pitch && IsParameter(emitter, value)) {
    flat.at = [&emitter, value, shape, plane](const Expr& n, const Expr& c, const Expr&, const Expr& position) {
      const Index at = Regroup({Opaque(position, plane)}, {plane}, {shape[2], shape[3]});
      return emitter.Evaluate([&] { return emitter.At(value, {Opaque(n, shape[0]), Opaque(c, shape[1]), at[0], at[1]}); });
    };
    return flat;
  }
  Func copy("flat");
  Var position("position"), phase("phase"), channel("channel"), batch("batch");
  const Expr row = position / Int(flat.pitch);
  const Expr y = row * Int(rows.stride) + phase / Int(columns.stride) + Int(rows.begin);
  const Expr x = (position % Int(flat.pitch)) * Int(columns.stride) + phase % Int(columns.stride) + Int(columns.begin);
  const Expr element = emitter.Evaluate([&] {
    return emitter.At(value, {Opaque(batch, shape[0]), Opaque(channel, shape[1]), Opaque(clamp(y, 0, Int(shape[2] - 1)), shape[2]),
                              Opaque(clamp(x, 0, Int(shape[3] - 1)), shape[3])});
  });
  copy(position, phase, channel, batch) = select(y >= 0 && y < Int(shape[2]) && x >= 0 && x < Int(shape[3]), element, 0.0f);
  copy.compute_root();
  const int lanes = emitter.VectorLanes(Halide::Float(32));
  if (plane >= lanes) copy.vectorize(position, lanes, Halide::TailStrategy::RoundUp);
  constexpr int64_t kWorthThreads = 32768;
  if (emitter.Parallel() && plane * shape[1] > kWorthThreads && shape[1] > 1)
    copy.parallel(channel, Int(std::max<int64_t>(1, shape[1] / 16)));
  flat.at = [copy](const Expr& n, const Expr& c, const Expr& p, const Expr& at) { return copy(at, p, c, n); };
  return flat;
}

Expr WeightAt(Emitter& emitter, size_t weight, const Expr& a, const Expr& b, const Expr& ky, const Expr& kx) {
  const Shape& shape = emitter.ShapeOf(weight);
  return emitter.Evaluate([&] {
    return emitter.At(weight, {Opaque(a, shape[0]), Opaque(b, shape[1]), Opaque(ky, shape[2]), Opaque(kx, shape[3])});
  });
}

void DefineDense(Emitter& emitter, const Step& step, const Convolution& c) {
  const Window& w = c.window;
  const auto extent = [&](size_t d) { return Extent{-w.pad_begin[d], (c.output[d] - 1) * w.stride[d] + w.Span(d), w.stride[d]}; };
  // A 1x1 kernel without padding reads whole rows even where the last columns are not needed.
  const bool pointwise =
      w.kernel[0] * w.kernel[1] == 1 && w.stride[0] == 1 && w.stride[1] == 1 && w.pad_begin[0] + w.pad_begin[1] == 0 && c.output == c.input;
  const FlatInput input = MakeFlatInput(emitter, step.inputs[0], pointwise ? Extent{0, c.input[0], 1} : extent(0),
                                        pointwise ? Extent{0, c.input[1], 1} : extent(1), c.output[1]);
  const int64_t group_inputs = c.input_channels / c.groups;
  const int64_t group_outputs = c.output_channels / c.groups;
  const size_t weight = step.inputs[1];
  ProductSpec spec;
  spec.tile_rows = emitter.options().tile_rows;
  spec.tile_vectors = emitter.options().tile_vectors;
  spec.outer = c.batch;
  spec.rows = c.output_channels;
  spec.columns = (c.output[0] - 1) * input.pitch + c.output[1];
  const bool dense_rows = input.pitch == c.output[1];
  if (!dense_rows) spec.columns = c.output[0] * input.pitch;
  spec.reduction = {w.kernel[1], w.kernel[0], group_inputs};
  spec.row_group = c.groups > 1 ? group_outputs : 0;
  spec.left = [&emitter, weight](const Expr&, const Expr& row, const Expr&, const RDom& r) {
    return WeightAt(emitter, weight, row, r.z, r.y, r.x);
  };
  spec.right = [&](const Expr& outer, const Expr& row, const Expr& column, const RDom& r) {
    const Expr y = r.y * Int(w.dilation[0]);
    const Expr x = r.x * Int(w.dilation[1]);
    const Expr channel = c.groups == 1 ? Expr(r.z) : row / Int(group_outputs) * Int(group_inputs) + r.z;
    const Expr phase = (y % Int(w.stride[0])) * Int(w.stride[1]) + x % Int(w.stride[1]);
    const Expr shift = (y / Int(w.stride[0])) * Int(input.pitch) + x / Int(w.stride[1]);
    return input.at(outer, channel, phase, column + shift);
  };
  Emitter::Anchor anchor = MakeProduct(emitter, spec);
  if (dense_rows) {
    emitter.DefineAnchor(step.outputs[0], std::move(anchor));
    return;
  }
  const auto shared = emitter.AddAnchor(std::move(anchor));
  const Shape padded = {spec.outer, spec.rows, c.output[0], input.pitch};
  emitter.Define(step.outputs[0], [shared, padded, c](const Index& index) {
    Index wide = index;
    wide[3] = Opaque(ToExpr(index[3]), padded[3]);
    if (padded[2] * padded[3] == 1) wide[3] = {};
    return Emitter::CallAnchor(*shared, wide, padded);
  });
}

Status EmitConvolution(Emitter& emitter, const Step& step) {
  const Convolution c = COLLAGE_TRY(ReadConvolution(emitter.TypeOf(step.inputs[0]), emitter.TypeOf(step.inputs[1]), step.attributes));
  constexpr int64_t kMostTaps = 64;
  if (c.input_channels == c.groups && c.groups > 1 && c.window.kernel[0] * c.window.kernel[1] <= kMostTaps) {
    DefineDepthwise(emitter, step, c);
  } else {
    DefineDense(emitter, step, c);
  }
  return {};
}

// A transposed convolution of stride s as s * s convolutions of stride 1, one for each place in a block of the output: the
// taps that meet there are every s-th of the kernel.
Status EmitTransposedConvolution(Emitter& emitter, const Step& step) {
  const Convolution c =
      COLLAGE_TRY(ReadTransposedConvolution(emitter.TypeOf(step.inputs[0]), emitter.TypeOf(step.inputs[1]), step.attributes));
  const Window& w = c.window;
  if (w.dilation[0] != 1 || w.dilation[1] != 1) return Fail("a dilated kernel");
  std::array<int64_t, 2> taps{}, blocks{};
  std::array<Extent, 2> extents{};
  for (size_t d = 0; d < 2; ++d) {
    taps[d] = (w.kernel[d] + w.stride[d] - 1) / w.stride[d];
    blocks[d] = (c.output[d] + w.stride[d] - 1) / w.stride[d];
    const int64_t furthest = (w.stride[d] - 1 + w.pad_begin[d]) / w.stride[d];  // offset of the last place in a block
    const int64_t nearest = w.pad_begin[d] / w.stride[d];
    extents[d] = {nearest - (taps[d] - 1), blocks[d] + furthest - nearest + taps[d] - 1, 1};
  }
  const FlatInput input = MakeFlatInput(emitter, step.inputs[0], extents[0], extents[1], blocks[1]);
  const int64_t group_inputs = c.input_channels / c.groups;
  const int64_t group_outputs = c.output_channels / c.groups;
  const int64_t places = w.stride[0] * w.stride[1];
  const size_t weight = step.inputs[1];
  const auto place = [&](const Expr& outer, size_t d) {
    const Expr index = outer % Int(places);
    return (d == 0 ? index / Int(w.stride[1]) : index % Int(w.stride[1])) + Int(w.pad_begin[d]);
  };
  ProductSpec spec;
  spec.tile_rows = emitter.options().tile_rows;
  spec.tile_vectors = emitter.options().tile_vectors;
  spec.outer = c.batch * places;
  spec.rows = c.output_channels;
  spec.columns = blocks[0] * input.pitch;
  spec.reduction = {taps[1], taps[0], group_inputs};
  spec.row_group = group_outputs;
  const auto channel = [&](const Expr& row, const RDom& r) {
    return c.groups == 1 ? Expr(r.z) : row / Int(group_outputs) * Int(group_inputs) + r.z;
  };
  spec.left = [&](const Expr& outer, const Expr& row, const Expr&, const RDom& r) {
    const Expr ky = place(outer, 0) % Int(w.stride[0]) + r.y * Int(w.stride[0]);
    const Expr kx = place(outer, 1) % Int(w.stride[1]) + r.x * Int(w.stride[1]);
    const Expr inside = ky < Int(w.kernel[0]) && kx < Int(w.kernel[1]);
    const Expr value = WeightAt(emitter, weight, channel(row, r), c.groups == 1 ? row : row % Int(group_outputs),
                                clamp(ky, 0, Int(w.kernel[0] - 1)), clamp(kx, 0, Int(w.kernel[1] - 1)));
    return select(inside, value, 0.0f);
  };
  spec.right = [&](const Expr& outer, const Expr& row, const Expr& column, const RDom& r) {
    const Expr y = place(outer, 0) / Int(w.stride[0]) - r.y - Int(extents[0].begin);
    const Expr x = place(outer, 1) / Int(w.stride[1]) - r.x - Int(extents[1].begin);
    return input.at(outer / Int(places), channel(row, r), Expr(0), column + y * Int(input.pitch) + x);
  };
  const auto shared = emitter.AddAnchor(MakeProduct(emitter, spec));
  const Shape source = {c.batch, w.stride[0], w.stride[1], c.output_channels, blocks[0], input.pitch};
  emitter.Define(step.outputs[0], [shared, source, blocks, w, c](const Index& index) {
    const auto split = [&](size_t d) {
      if (c.output[d] == blocks[d] * w.stride[d]) return Regroup({index[2 + d]}, {c.output[d]}, {blocks[d], w.stride[d]});
      const Expr at = ToExpr(index[2 + d]);
      return Index{Opaque(at / Int(w.stride[d]), blocks[d]), Opaque(at % Int(w.stride[d]), w.stride[d])};
    };
    const Index y = split(0);
    const Index x = split(1);
    const DimensionIndex column = source[5] == 1 ? DimensionIndex{} : Opaque(ToExpr(x[0]), source[5]);
    return Emitter::CallAnchor(*shared, {index[0], y[1], x[1], index[1], y[0], column}, source);
  });
  return {};
}

}  // namespace

void AddConvolution(EmitTable& table) {
  table["nn.conv2d"] = EmitConvolution;
  table["nn.conv2d_transpose"] = EmitTransposedConvolution;
}

}  // namespace collage::native
