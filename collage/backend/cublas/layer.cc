#include "collage/backend/cublas/layer.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>

#include "collage/backend/batch_offsets.h"
#include "collage/backend/layer_steps.h"
#include "collage/backend/written_out_activation.h"
#include "collage/op/matrix_product.h"

namespace collage::cublas {
namespace {

using Step = OpSequence::Step;

const Shape& ShapeOf(const OpSequence& sequence, size_t value) { return sequence.values[value].type.shape; }

/// Elements from one batch to the next, where that is a number.
Result<int64_t> StepOf(const Shape& shape, const Shape& batches) {
  if (ElementCount(batches) == 1) return 0;
  const std::vector<int64_t> offsets = BatchOffsets(shape, batches);
  const int64_t step = offsets[1];
  for (size_t batch = 0; batch < offsets.size(); ++batch) {
    if (offsets[batch] != static_cast<int64_t>(batch) * step)
      return Fail("cublas: the batches of a tensor of shape " + ToString(shape) + " broadcast to " + ToString(batches) +
                  " do not lie equally far apart");
  }
  return step;
}

/// The library counts rows, columns and batches in 32 bits.
Status CheckExtents(const Layer& layer) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const bool fits = std::max({layer.batches, layer.rows, layer.columns, layer.depth}) <= kMost;
  return fits ? Status() : Fail("cublas: an extent of a product is above 2^31 - 1");
}

Result<Layer> ReadProduct(const OpSequence& sequence) {
  const Step& step = sequence.steps[0];
  const std::string& name = step.op->name;
  if (name != "nn.dense" && name != "nn.matmul" && name != "nn.batch_matmul") return Fail("cublas: " + name + " is no product");
  const TensorType& a = sequence.values[step.inputs[0]].type;
  const TensorType& b = sequence.values[step.inputs[1]].type;
  const auto read = name == "nn.dense" ? ReadDense : name == "nn.matmul" ? ReadMatmul : ReadBatchMatmul;
  const MatrixProduct product = WithJoinedRows(COLLAGE_TRY(read(a, b, step.attributes)));
  // What has no batches may be a vector, which has no matrices to be counted.
  const int64_t step_a = product.batch.empty() ? 0 : COLLAGE_TRY(StepOf(a.shape, product.batch));
  const int64_t step_b = product.batch.empty() ? 0 : COLLAGE_TRY(StepOf(b.shape, product.batch));
  Layer layer{.a = {step.inputs[0], product.transpose_a, step_a},
              .b = {step.inputs[1], product.transpose_b, step_b},
              .batches = ElementCount(product.batch),
              .rows = product.rows,
              .columns = product.columns,
              .depth = product.depth,
              .result = step.outputs[0],
              .dtype = a.dtype};
  COLLAGE_TRY_STATUS(CheckExtents(layer));
  return layer;
}

bool TakeFactor(const OpSequence& sequence, const Step& step, Layer& layer) {
  const std::optional<size_t> other = OtherOperand(sequence, step, layer.result);
  const bool divides = step.op->name == "divide" && step.inputs[0] == layer.result;
  if (!other || layer.bias || layer.added || (step.op->name != "multiply" && !divides)) return false;
  const std::optional<double> factor = ScalarOf(sequence, *other);
  if (!factor) return false;
  layer.factor *= divides ? 1 / *factor : *factor;
  return true;
}

/// Whether a step adds `value` along the last dimension of a tensor, one number for each column.
bool IsAlongColumns(const OpSequence& sequence, const Step& step, size_t value, const Layer& layer) {
  const Shape& shape = ShapeOf(sequence, layer.result);
  const Shape& own = ShapeOf(sequence, value);
  if (own.empty() || own.back() != layer.columns || ElementCount(own) != layer.columns) return false;
  if (step.op->name == "add") return true;
  constexpr int64_t kDefaultAxis = 1;  // of nn.bias_add
  const int64_t axis = step.attributes.Int("axis", kDefaultAxis).value_or(0);
  return step.inputs[0] == layer.result && (axis == -1 || axis + 1 == static_cast<int64_t>(shape.size()));
}

bool TakeBias(const OpSequence& sequence, const Step& step, Layer& layer) {
  if (layer.bias || (step.op->name != "add" && step.op->name != "nn.bias_add")) return false;
  const std::optional<size_t> other = OtherOperand(sequence, step, layer.result);
  if (!other || !sequence.values[*other].constant || !IsAlongColumns(sequence, step, *other, layer)) return false;
  layer.bias = other;
  return true;
}

bool TakeAdded(const OpSequence& sequence, const Step& step, Layer& layer) {
  if (layer.added) return false;
  layer.added = AddedTensor(sequence, step, layer.result);
  return layer.added.has_value();
}

/// Takes the steps in front that add or multiply, and answers the rest. An activation that is written out reads its operand again, and
/// may begin with a product, too.
std::span<const Step> TakeTerms(const OpSequence& sequence, std::span<const Step> steps, Layer& layer) {
  for (; !steps.empty(); steps = steps.subspan(1)) {
    const Step& step = steps[0];
    if (IsReadIn(steps.subspan(1), layer.result)) break;
    if (!TakeFactor(sequence, step, layer) && !TakeBias(sequence, step, layer) && !TakeAdded(sequence, step, layer)) break;
    layer.result = step.outputs[0];
  }
  return steps;
}

std::span<const Step> TakeActivation(const OpSequence& sequence, std::span<const Step> steps, Layer& layer) {
  if (steps.empty()) return steps;
  if (steps[0].op->name == "nn.relu" && steps[0].inputs[0] == layer.result) {
    layer.activation = Activation::kRelu;
    layer.result = steps[0].outputs[0];
    return steps.subspan(1);
  }
  const std::optional<WrittenOutActivation> found = RecogniseActivation(sequence, steps, layer.result);
  // The library's GELU is the one by tanh.
  if (!found || found->activation != ActivationKind::kGeluByTanh) return steps;
  layer.activation = Activation::kGeluByTanh;
  layer.result = found->result;
  return steps.subspan(found->steps);
}

}  // namespace

Result<Layer> RecogniseLayer(const OpSequence& sequence) {
  COLLAGE_TRY_STATUS(CheckFloatTensors("cublas", sequence));
  Layer layer = COLLAGE_TRY(ReadProduct(sequence));
  std::span<const Step> rest = TakeTerms(sequence, std::span(sequence.steps).subspan(1), layer);
  rest = TakeActivation(sequence, rest, layer);
  if (!rest.empty())
    return Fail("cublas: behind a product only a constant factor, a bias, a tensor of its shape, ReLU and GELU by tanh are computed, not " +
                rest[0].op->name);
  if (layer.result != sequence.results[0]) return Fail("cublas: the result is not the end of the layer");
  return layer;
}

}  // namespace collage::cublas
