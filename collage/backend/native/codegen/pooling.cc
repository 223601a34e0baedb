#include <algorithm>
#include <limits>
#include <memory>

#include "collage/backend/native/codegen/operators.h"
#include "collage/backend/native/codegen/planes.h"
#include "collage/op/window.h"

namespace collage::native {

using Halide::Expr;

namespace {

using Step = OpSequence::Step;

Expr LargestUnder(const Pooling& pooling, const WindowedInput& input, const Expr& channel, const Expr& y, const Expr& x,
                  const Expr& lowest) {
  Expr largest;
  for (int64_t ky = 0; ky < pooling.window.kernel[0]; ++ky) {
    for (int64_t kx = 0; kx < pooling.window.kernel[1]; ++kx) {
      const Expr element = input.At(channel, y, x, ky, kx);
      largest = largest.defined() ? Maximum(largest, element) : element;
    }
  }
  return largest.defined() ? largest : lowest;
}

Status EmitMaxPool(Emitter& emitter, const Step& step) {
  const Pooling pooling = COLLAGE_TRY(ReadPooling(emitter.TypeOf(step.inputs[0]), step.attributes));
  const Halide::Type type = ElementType(emitter.TypeOf(step.inputs[0]).dtype);
  const Expr lowest = type.is_float() ? Expr(Halide::Internal::FloatImm::make(type, -std::numeric_limits<double>::infinity())) : type.min();
  const auto input = std::make_shared<WindowedInput>(emitter, step.inputs[0], pooling.input, pooling.output, pooling.window, lowest);
  DefinePlanes(emitter, step.outputs[0], input, pooling.output, static_cast<double>(pooling.window.kernel[0] * pooling.window.kernel[1]),
               [&](const Expr& channel, const Expr& y, const Expr& x) { return LargestUnder(pooling, *input, channel, y, x, lowest); });
  return {};
}

// One divided by how many elements count, for each output position.
Tensor Shares(const Pooling& p) {
  const auto taps = [&](size_t d, int64_t o) {
    const int64_t start = o * p.window.stride[d] - p.window.pad_begin[d];
    int64_t count = 0;
    for (int64_t k = 0; k < p.window.kernel[d]; ++k) {
      const int64_t at = start + k * p.window.dilation[d];
      count += p.count_include_pad ? at < p.input[d] + p.window.pad_end[d] : at >= 0 && at < p.input[d];
    }
    return count;
  };
  std::vector<float> shares;
  for (int64_t y = 0; y < p.output[0]; ++y) {
    for (int64_t x = 0; x < p.output[1]; ++x) shares.push_back(1.0f / static_cast<float>(std::max<int64_t>(taps(0, y) * taps(1, x), 1)));
  }
  return Tensor::FromVector({{p.output[0], p.output[1]}, DType::kFloat32}, shares);
}

Status EmitAveragePool(Emitter& emitter, const Step& step) {
  const Pooling pooling = COLLAGE_TRY(ReadPooling(emitter.TypeOf(step.inputs[0]), step.attributes));
  const auto input = std::make_shared<WindowedInput>(emitter, step.inputs[0], pooling.input, pooling.output, pooling.window, Expr(0.0f));
  const Tensor shares = Shares(pooling);
  const float* share = shares.Data<float>();
  const bool equal = std::all_of(share, share + shares.ElementCount(), [&](float other) { return other == *share; });
  std::optional<Halide::ImageParam> table;
  if (!equal) table = emitter.AddTable(shares);
  DefinePlanes(emitter, step.outputs[0], input, pooling.output, static_cast<double>(pooling.window.kernel[0] * pooling.window.kernel[1]),
               [&](const Expr& channel, const Expr& y, const Expr& x) {
                 Expr sum = 0.0f;
                 for (int64_t ky = 0; ky < pooling.window.kernel[0]; ++ky) {
                   for (int64_t kx = 0; kx < pooling.window.kernel[1]; ++kx) sum = sum + input->At(channel, y, x, ky, kx);
                 }
                 return sum * (table ? (*table)(y * static_cast<int>(pooling.output[1]) + x) : Expr(*share));
               });
  return {};
}

}  // namespace

void AddPooling(EmitTable& table) {
  table["nn.max_pool2d"] = EmitMaxPool;
  table["nn.avg_pool2d"] = EmitAveragePool;
}

}  // namespace collage::native
