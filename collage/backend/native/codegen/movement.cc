#include <algorithm>
#include <cmath>

#include "collage/backend/native/codegen/operators.h"
#include "collage/op/rules.h"
#include "collage/op/slice.h"

namespace collage::native {

using Halide::clamp;
using Halide::Expr;
using Halide::select;

namespace {

using Step = OpSequence::Step;

// reshape, squeeze, expand_dims, batch_flatten: the same flat order.
Status EmitView(Emitter& emitter, const Step& step) {
  const size_t input = step.inputs[0];
  const size_t output = step.outputs[0];
  emitter.Define(output, [&emitter, input, output](const Index& index) {
    return emitter.At(input, Regroup(index, emitter.ShapeOf(output), emitter.ShapeOf(input)));
  });
  return {};
}

Status EmitTranspose(Emitter& emitter, const Step& step) {
  const size_t input = step.inputs[0];
  const std::vector<size_t> axes = COLLAGE_TRY(ReadPermutation(emitter.TypeOf(input), step.attributes));
  emitter.Define(step.outputs[0], [&emitter, input, axes](const Index& index) {
    Index source(axes.size());
    for (size_t i = 0; i < axes.size(); ++i) source[axes[i]] = index[i];
    return emitter.At(input, source);
  });
  return {};
}

Status EmitBroadcastTo(Emitter& emitter, const Step& step) {
  const size_t input = step.inputs[0];
  emitter.Define(step.outputs[0],
                 [&emitter, input](const Index& index) { return emitter.At(input, Broadcast(index, emitter.ShapeOf(input))); });
  return {};
}

Status EmitTile(Emitter& emitter, const Step& step) {
  const size_t input = step.inputs[0];
  const size_t output = step.outputs[0];
  emitter.Define(output, [&emitter, input, output](const Index& index) {
    const Shape& from = emitter.ShapeOf(input);
    const Shape& to = emitter.ShapeOf(output);
    Index source(from.size());
    const size_t skipped = to.size() - from.size();
    for (size_t i = 0; i < from.size(); ++i) {
      const int64_t extent = to[skipped + i];
      source[i] = extent == from[i] ? index[skipped + i] : Regroup({index[skipped + i]}, {extent}, {extent / from[i], from[i]})[1];
    }
    return emitter.At(input, source);
  });
  return {};
}

// In a blocked layout the axis is an outer digit and one inside the block; whole blocks can be told apart.
void WishPiecesOf(Emitter& emitter, DimensionIndex position, std::vector<int64_t> boundaries) {
  if (position.digits.size() == 2) {
    const int64_t block = position.digits.back().extent;
    const auto divides = [&](int64_t place) { return place % block == 0; };
    if (divides(position.offset) && std::all_of(boundaries.begin(), boundaries.end(), divides)) {
      position.digits.pop_back();
      position.offset /= block;
      for (int64_t& boundary : boundaries) boundary /= block;
    }
  }
  emitter.WishPieces(position, boundaries);
}

// Joins inputs along an axis; boundaries[i] is where input i begins.
void DefineConcatenation(Emitter& emitter, size_t output, std::vector<size_t> inputs, size_t axis, std::vector<int64_t> boundaries,
                         bool stacked) {
  emitter.Define(output, [&emitter, inputs = std::move(inputs), axis, boundaries = std::move(boundaries), stacked](const Index& index) {
    const DimensionIndex& position = index[axis];
    const auto piece = [&](size_t i, DimensionIndex local) {
      Index source = index;
      source[axis] = std::move(local);
      if (stacked) source.erase(source.begin() + static_cast<std::ptrdiff_t>(axis));
      return emitter.At(inputs[i], source);
    };
    const int64_t first = position.offset;
    const int64_t last = position.offset + position.Span() - 1;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (first < boundaries[i] || last >= boundaries[i + 1]) continue;
      DimensionIndex local = position;
      local.offset -= boundaries[i];
      return piece(i, std::move(local));
    }
    WishPiecesOf(emitter, position, boundaries);
    const Expr at = ToExpr(position);
    Expr value;
    for (size_t i = inputs.size(); i-- > 0;) {
      const int64_t extent = boundaries[i + 1] - boundaries[i];
      const Expr local = clamp(at - static_cast<int>(boundaries[i]), 0, static_cast<int>(extent - 1));
      const Expr element = piece(i, Opaque(local, extent));
      value = value.defined() ? select(at < static_cast<int>(boundaries[i + 1]), element, value) : element;
    }
    return value;
  });
}

Status EmitConcatenate(Emitter& emitter, const Step& step) {
  const size_t axis = AxisAttribute(step.attributes, "axis", 0, emitter.ShapeOf(step.outputs[0]).size());
  std::vector<int64_t> boundaries = {0};
  for (size_t input : step.inputs) boundaries.push_back(boundaries.back() + emitter.ShapeOf(input)[axis]);
  DefineConcatenation(emitter, step.outputs[0], step.inputs, axis, boundaries, false);
  return {};
}

Status EmitStack(Emitter& emitter, const Step& step) {
  const size_t axis = AxisAttribute(step.attributes, "axis", 0, emitter.ShapeOf(step.outputs[0]).size());
  std::vector<int64_t> boundaries = {0};
  for (size_t i = 0; i < step.inputs.size(); ++i) boundaries.push_back(boundaries.back() + 1);
  DefineConcatenation(emitter, step.outputs[0], step.inputs, axis, boundaries, true);
  return {};
}

Status EmitSplit(Emitter& emitter, const Step& step) {
  const size_t input = step.inputs[0];
  const size_t axis = AxisAttribute(step.attributes, "axis", 0, emitter.ShapeOf(input).size());
  int64_t begin = 0;
  for (size_t output : step.outputs) {
    emitter.Define(output, [&emitter, input, axis, begin](Index index) {
      index[axis].offset += begin;
      return emitter.At(input, index);
    });
    begin += emitter.ShapeOf(output)[axis];
  }
  return {};
}

Status EmitStridedSlice(Emitter& emitter, const Step& step) {
  const size_t input = step.inputs[0];
  const Slice slice = COLLAGE_TRY(ReadSlice(emitter.TypeOf(input), step.attributes));
  emitter.Define(step.outputs[0], [&emitter, input, slice](const Index& index) {
    const Shape& from = emitter.ShapeOf(input);
    Index source = index;
    for (size_t i = 0; i < from.size(); ++i) {
      if (slice.stride[i] == 1 || slice.result[i] == 1) {
        source[i].offset += slice.begin[i];
      } else {
        source[i] = Opaque(ToExpr(index[i]) * static_cast<int>(slice.stride[i]) + static_cast<int>(slice.begin[i]), from[i]);
      }
    }
    return emitter.At(input, source);
  });
  return {};
}

Expr InRange(const Expr& position, int64_t extent, const std::string& mode) {
  const Expr index = Halide::cast<int32_t>(position);
  const int last = static_cast<int>(extent - 1);
  if (mode == "wrap") return ((index % (last + 1)) + last + 1) % (last + 1);
  return clamp(index, 0, last);
}

Status EmitTake(Emitter& emitter, const Step& step) {
  const size_t data = step.inputs[0];
  const size_t indices = step.inputs[1];
  const std::string mode = StringAttribute(step.attributes, "mode", "clip");
  const size_t index_rank = emitter.ShapeOf(indices).size();
  if (!HasAttribute(step.attributes, "axis")) {
    emitter.Define(step.outputs[0], [&emitter, data, indices, mode](const Index& index) {
      const int64_t count = ElementCount(emitter.ShapeOf(data));
      const Expr position = InRange(emitter.At(indices, index), count, mode);
      return emitter.At(data, Regroup({Opaque(position, count)}, {count}, emitter.ShapeOf(data)));
    });
    return {};
  }
  const size_t axis = AxisAttribute(step.attributes, "axis", 0, emitter.ShapeOf(data).size());
  emitter.Define(step.outputs[0], [&emitter, data, indices, mode, axis, index_rank](const Index& index) {
    const auto first = index.begin() + static_cast<std::ptrdiff_t>(axis);
    const auto last = first + static_cast<std::ptrdiff_t>(index_rank);
    const int64_t extent = emitter.ShapeOf(data)[axis];
    Index source(index.begin(), first);
    source.push_back(Opaque(InRange(emitter.At(indices, Index(first, last)), extent, mode), extent));
    source.insert(source.end(), last, index.end());
    return emitter.At(data, source);
  });
  return {};
}

Status EmitGatherNd(Emitter& emitter, const Step& step) {
  const size_t data = step.inputs[0];
  const size_t indices = step.inputs[1];
  const auto batch = static_cast<size_t>(IntAttribute(step.attributes, "batch_dims", 0));
  emitter.Define(step.outputs[0], [&emitter, data, indices, batch](const Index& index) {
    // Relay: indices are [depth, i1, ...], the first axis selects the coordinate.
    const Shape& shape = emitter.ShapeOf(data);
    const auto depth = static_cast<size_t>(emitter.ShapeOf(indices)[0]);
    const size_t index_rank = emitter.ShapeOf(indices).size() - 1;
    Index source(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(batch));
    for (size_t i = 0; i < depth; ++i) {
      Index at = {DimensionIndex{{}, static_cast<int64_t>(i)}};
      at.insert(at.end(), index.begin(), index.begin() + static_cast<std::ptrdiff_t>(index_rank));
      const Expr coordinate = Halide::cast<int32_t>(emitter.At(indices, at));
      const int extent = static_cast<int>(shape[batch + i]);
      source.push_back(Opaque(clamp(select(coordinate < 0, coordinate + extent, coordinate), 0, extent - 1), extent));
    }
    source.insert(source.end(), index.begin() + static_cast<std::ptrdiff_t>(index_rank), index.end());
    return emitter.At(data, source);
  });
  return {};
}

Status EmitPad(Emitter& emitter, const Step& step) {
  const size_t data = step.inputs[0];
  const size_t value = step.inputs[1];
  const std::string mode = StringAttribute(step.attributes, "pad_mode", "constant");
  std::vector<int64_t> before;
  for (const auto& width : COLLAGE_TRY(ReadPadWidth(emitter.TypeOf(data), step.attributes))) before.push_back(width[0]);
  const size_t output = step.outputs[0];
  emitter.Define(output, [&emitter, data, value, mode, before, output](const Index& index) {
    const Shape& from = emitter.ShapeOf(data);
    const Shape& to = emitter.ShapeOf(output);
    Index source = index;
    Expr outside;
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] == to[i] && before[i] == 0) continue;
      const int64_t lowest = index[i].offset - before[i];
      const int64_t highest = lowest + index[i].Span() - 1;
      if (lowest >= 0 && highest < from[i]) {
        source[i].offset = lowest;
        continue;
      }
      const int last = static_cast<int>(from[i] - 1);
      const Expr position = ToExpr(index[i]) - static_cast<int>(before[i]);
      Expr inside = clamp(Halide::likely(position), 0, last);
      if (mode == "reflect") {
        const auto magnitude = [](const Expr& x) { return Halide::max(x, -x); };
        inside = clamp(last - magnitude(last - magnitude(position)), 0, last);
      } else if (mode == "constant") {
        const Expr beyond = position < 0 || position > last;
        outside = outside.defined() ? outside || beyond : beyond;
      }
      source[i] = Opaque(inside, from[i]);
    }
    const Expr element = emitter.At(data, source);
    if (!outside.defined()) return element;
    return select(outside, emitter.At(value, {}), Halide::likely(element));
  });
  return {};
}

Status EmitDepthToSpace(Emitter& emitter, const Step& step) {
  const size_t input = step.inputs[0];
  const int64_t block = IntAttribute(step.attributes, "block_size", 1);
  const bool depth_first = StringAttribute(step.attributes, "mode", "DCR") == "DCR";
  emitter.Define(step.outputs[0], [&emitter, input, block, depth_first](const Index& index) {
    const Shape& from = emitter.ShapeOf(input);
    const int64_t channels = from[1] / (block * block);
    const Index y = Regroup({index[2]}, {from[2] * block}, {from[2], block});
    const Index x = Regroup({index[3]}, {from[3] * block}, {from[3], block});
    const Index channel = depth_first ? Regroup({y[1], x[1], index[1]}, {block, block, channels}, {from[1]})
                                      : Regroup({index[1], y[1], x[1]}, {channels, block, block}, {from[1]});
    return emitter.At(input, {index[0], channel[0], y[0], x[0]});
  });
  return {};
}

Status EmitSpaceToDepth(Emitter& emitter, const Step& step) {
  const size_t input = step.inputs[0];
  const int64_t block = IntAttribute(step.attributes, "block_size", 1);
  emitter.Define(step.outputs[0], [&emitter, input, block](const Index& index) {
    const Shape& from = emitter.ShapeOf(input);
    const Index parts = Regroup({index[1]}, {from[1] * block * block}, {block, block, from[1]});
    const Index y = Regroup({index[2], parts[0]}, {from[2] / block, block}, {from[2]});
    const Index x = Regroup({index[3], parts[1]}, {from[3] / block, block}, {from[3]});
    return emitter.At(input, {index[0], parts[2], y[0], x[0]});
  });
  return {};
}

// Where an output position lies in the data: tables of the lower neighbour, the upper one and the upper one's weight.
struct Samples {
  Halide::ImageParam low;
  Halide::ImageParam high;
  Halide::ImageParam weight;
  int64_t extent;

  DimensionIndex Low(const Expr& at) const { return Opaque(clamp(low(at), 0, static_cast<int>(extent - 1)), extent); }
  DimensionIndex High(const Expr& at) const { return Opaque(clamp(high(at), 0, static_cast<int>(extent - 1)), extent); }
};

Samples MakeSamples(Emitter& emitter, int64_t from, int64_t to, double scale, bool align_corners) {
  std::vector<int32_t> low;
  std::vector<int32_t> high;
  std::vector<float> weight;
  for (int64_t i = 0; i < to; ++i) {
    double place = static_cast<double>(i) / scale;
    if (align_corners) place = to == 1 ? 0 : static_cast<double>(i * (from - 1)) / static_cast<double>(to - 1);
    const int64_t first = std::min(static_cast<int64_t>(std::floor(place)), from - 1);
    low.push_back(static_cast<int32_t>(first));
    high.push_back(static_cast<int32_t>(std::min(first + 1, from - 1)));
    weight.push_back(static_cast<float>(std::min(place - static_cast<double>(first), 1.0)));
  }
  return {emitter.AddTable(Tensor::FromVector({{to}, DType::kInt32}, low)),
          emitter.AddTable(Tensor::FromVector({{to}, DType::kInt32}, high)),
          emitter.AddTable(Tensor::FromVector({{to}, DType::kFloat32}, weight)), from};
}

Status EmitUpsampling(Emitter& emitter, const Step& step) {
  const size_t input = step.inputs[0];
  const Shape& from = emitter.ShapeOf(input);
  const Shape& to = emitter.ShapeOf(step.outputs[0]);
  const bool bilinear = StringAttribute(step.attributes, "method", "nearest_neighbor") == "bilinear";
  const double scale_h = DoubleAttribute(step.attributes, "scale_h", 1);
  const double scale_w = DoubleAttribute(step.attributes, "scale_w", 1);
  const bool whole = static_cast<double>(to[2]) == scale_h * static_cast<double>(from[2]) && to[2] % from[2] == 0 &&
                     static_cast<double>(to[3]) == scale_w * static_cast<double>(from[3]) && to[3] % from[3] == 0;
  if (!bilinear && whole) {
    emitter.Define(step.outputs[0], [&emitter, input, from, to](const Index& index) {
      Index source = index;
      for (size_t i : {2, 3}) source[i] = Regroup({index[i]}, {to[i]}, {from[i], to[i] / from[i]})[0];
      return emitter.At(input, source);
    });
    return {};
  }
  const bool align_corners = bilinear && BoolAttribute(step.attributes, "align_corners", false);
  const Samples rows = MakeSamples(emitter, from[2], to[2], scale_h, align_corners);
  const Samples columns = MakeSamples(emitter, from[3], to[3], scale_w, align_corners);
  emitter.Define(step.outputs[0], [&emitter, input, rows, columns, bilinear](const Index& index) {
    const Expr y = ToExpr(index[2]);
    const Expr x = ToExpr(index[3]);
    const auto at = [&](const DimensionIndex& row, const DimensionIndex& column) {
      return emitter.At(input, {index[0], index[1], row, column});
    };
    if (!bilinear) return at(rows.Low(y), columns.Low(x));
    const Halide::Type type = ElementType(emitter.TypeOf(input).dtype);
    const Expr right = Halide::cast(type, columns.weight(x));
    const Expr below = Halide::cast(type, rows.weight(y));
    const Expr top = at(rows.Low(y), columns.Low(x)) * (1 - right) + at(rows.Low(y), columns.High(x)) * right;
    const Expr bottom = at(rows.High(y), columns.Low(x)) * (1 - right) + at(rows.High(y), columns.High(x)) * right;
    return top * (1 - below) + bottom * below;
  });
  return {};
}

}  // namespace

void AddMovement(EmitTable& table) {
  for (const char* view : {"reshape", "squeeze", "expand_dims", "nn.batch_flatten"}) table[view] = EmitView;
  table["transpose"] = EmitTranspose;
  table["broadcast_to"] = EmitBroadcastTo;
  table["tile"] = EmitTile;
  table["concatenate"] = EmitConcatenate;
  table["stack"] = EmitStack;
  table["split"] = EmitSplit;
  table["strided_slice"] = EmitStridedSlice;
  table["take"] = EmitTake;
  table["gather_nd"] = EmitGatherNd;
  table["nn.pad"] = EmitPad;
  table["nn.depth_to_space"] = EmitDepthToSpace;
  table["nn.space_to_depth"] = EmitSpaceToDepth;
  table["nn.upsampling"] = EmitUpsampling;
}

}  // namespace collage::native
