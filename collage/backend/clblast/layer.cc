#include "collage/backend/clblast/layer.h"

#include <algorithm>
#include <span>

#include "collage/backend/batch_offsets.h"
#include "collage/backend/layer_steps.h"

namespace collage::clblast_layers {
namespace {

using Step = OpSequence::Step;

constexpr int64_t kMostElements = int64_t{1} << 30;  // CLBlast's kernels count in 32 bits

const Shape& ShapeOf(const OpSequence& sequence, size_t value) { return sequence.values[value].type.shape; }

bool IsParameter(const OpSequence& sequence, size_t value) {
  return std::find(sequence.parameters.begin(), sequence.parameters.end(), value) != sequence.parameters.end();
}

Result<Product> ReadProduct(const OpSequence& sequence, const Step& step) {
  const TensorType& a = sequence.values[step.inputs[0]].type;
  const TensorType& b = sequence.values[step.inputs[1]].type;
  const auto read = step.op->name == "nn.dense" ? ReadDense : step.op->name == "nn.matmul" ? ReadMatmul : ReadBatchMatmul;
  Product product{step.inputs[0], step.inputs[1], COLLAGE_TRY(read(a, b, step.attributes)), {0}, {0}, 1, {}, step.outputs[0]};
  product.geometry = WithJoinedRows(std::move(product.geometry));
  if (product.geometry.batch.empty()) return product;
  product.offsets_a = BatchOffsets(a.shape, product.geometry.batch);
  product.offsets_b = BatchOffsets(b.shape, product.geometry.batch);
  return product;
}

/// Takes a constant factor into the product.
bool TakeFactor(const OpSequence& sequence, const Step& step, Product& product) {
  const std::optional<size_t> other = OtherOperand(sequence, step, product.result);
  const bool divides = step.op->name == "divide" && step.inputs[0] == product.result;
  if (!other || product.added || (step.op->name != "multiply" && !divides)) return false;
  const OpSequence::Value& value = sequence.values[*other];
  if (!value.constant || value.type.ElementCount() != 1) return false;
  const float factor = value.constant->Data<float>()[0];
  product.factor *= divides ? 1 / factor : factor;
  product.result = step.outputs[0];
  return true;
}

/// Takes a tensor that is added. It becomes the result, so the product may not read it.
bool TakeSum(const OpSequence& sequence, const Step& step, Product& product) {
  const std::optional<size_t> other = OtherOperand(sequence, step, product.result);
  if (!other || product.added || step.op->name != "add" || !IsParameter(sequence, *other)) return false;
  const Shape& shape = ShapeOf(sequence, product.result);
  if (*other == product.a || *other == product.b || ShapeOf(sequence, *other) != shape) return false;
  product.added = *other;
  product.result = step.outputs[0];
  return true;
}

Result<Layer> RecogniseProduct(const OpSequence& sequence) {
  Product product = COLLAGE_TRY(ReadProduct(sequence, sequence.steps[0]));
  for (const Step& step : std::span(sequence.steps).subspan(1)) {
    if (!TakeFactor(sequence, step, product) && !TakeSum(sequence, step, product))
      return Fail("clblast: only a constant factor and a tensor that is added may follow a product");
  }
  if (product.result != sequence.results[0]) return Fail("clblast: a product has one result");
  return product;
}

/// CLBlast pads an image by as much behind it as before it.
bool FitsPadding(const Convolution& c, size_t d) {
  const int64_t positions = c.input[d] + 2 * c.window.pad_begin[d] - c.window.Span(d);
  return positions >= 0 && positions / c.window.stride[d] + 1 == c.output[d];
}

Result<Layer> RecogniseConvolution(const OpSequence& sequence) {
  const Step& step = sequence.steps[0];
  ConvolutionLayer layer{step.inputs[0], step.inputs[1], {}, step.outputs[0]};
  layer.geometry = COLLAGE_TRY(ReadConvolution(sequence.values[layer.data].type, sequence.values[layer.weight].type, step.attributes));
  if (sequence.steps.size() > 1 || layer.result != sequence.results[0]) return Fail("clblast: nothing may follow a convolution");
  if (!FitsPadding(layer.geometry, 0) || !FitsPadding(layer.geometry, 1))
    return Fail("clblast: an image is padded by as much behind it as before it");
  if (layer.geometry.groups > 1 && layer.geometry.groups == layer.geometry.output_channels)
    return Fail("clblast: a convolution of single channels is no product of matrices");
  if (layer.MatrixRows() > kMostElements / layer.MatrixColumns()) return Fail("clblast: the image as a matrix has more than 2^30 elements");
  return layer;
}

bool IsTaken(const OpSequence::Value& value) {
  return value.type.dtype == DType::kFloat32 && value.type.ElementCount() > 0 && value.type.ElementCount() <= kMostElements;
}

}  // namespace

bool ConvolutionLayer::IsProduct() const {
  const Window& w = geometry.window;
  const std::array<int64_t, 2> one{1, 1};
  return w.kernel == one && w.stride == one && w.pad_begin == std::array<int64_t, 2>{0, 0};
}

Result<Layer> RecogniseLayer(const OpSequence& sequence) {
  if (sequence.steps.empty() || sequence.results.size() != 1 || !std::all_of(sequence.values.begin(), sequence.values.end(), IsTaken))
    return Fail("clblast: float32 tensors of 1 to 2^30 elements are supported");
  const std::string& name = sequence.steps[0].op->name;
  if (name == "nn.conv2d") return RecogniseConvolution(sequence);
  if (name == "nn.dense" || name == "nn.matmul" || name == "nn.batch_matmul") return RecogniseProduct(sequence);
  return Fail("clblast: " + name + " is no product");
}

}  // namespace collage::clblast_layers
