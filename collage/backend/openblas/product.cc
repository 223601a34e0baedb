#include "collage/backend/openblas/product.h"

#include <algorithm>
#include <span>

#include "collage/backend/batch_offsets.h"

namespace collage::openblas {
namespace {

using Step = OpSequence::Step;

Result<Product> Batched(const OpSequence& sequence, const Step& step, bool transpose_b_default) {
  const Shape& a = sequence.values[step.inputs[0]].type.shape;
  const Shape& b = sequence.values[step.inputs[1]].type.shape;
  const Shape& result = sequence.values[step.outputs[0]].type.shape;
  if (a.size() < 2 || b.size() < 2) return Fail("openblas: matrices are wanted");
  const bool transpose_a = COLLAGE_TRY(step.attributes.Bool("transpose_a", false));
  const bool transpose_b = COLLAGE_TRY(step.attributes.Bool("transpose_b", transpose_b_default));
  const Shape batches(result.begin(), result.end() - 2);
  Product product{{step.inputs[0], transpose_a, a.back(), BatchOffsets(a, batches)},
                  {step.inputs[1], transpose_b, b.back(), BatchOffsets(b, batches)}};
  product.rows = result[result.size() - 2];
  product.columns = result.back();
  product.depth = a[a.size() - (transpose_a ? 2 : 1)];
  return product;
}

Product Dense(const OpSequence& sequence, const Step& step) {
  const TensorType& data = sequence.values[step.inputs[0]].type;
  const Shape& weight = sequence.values[step.inputs[1]].type.shape;
  Product product{{step.inputs[0], false, weight[1], {0}}, {step.inputs[1], true, weight[1], {0}}};
  product.rows = data.ElementCount() / weight[1];
  product.depth = weight[1];
  product.columns = weight[0];
  return product;
}

// A constant that has one value for each column.
std::optional<size_t> BiasOf(const OpSequence& sequence, const Step& step, size_t current) {
  if (step.op->name != "add" && step.op->name != "nn.bias_add") return std::nullopt;
  const Shape& shape = sequence.values[current].type.shape;
  const size_t other = step.inputs[step.inputs[0] == current ? 1 : 0];
  const OpSequence::Value& value = sequence.values[other];
  if (!value.constant || value.type.ElementCount() != shape.back() || sequence.values[step.outputs[0]].type.shape != shape)
    return std::nullopt;
  const Shape& added = value.type.shape;
  if (step.op->name == "add") return added.empty() || added.back() == shape.back() ? std::optional(other) : std::nullopt;
  const int64_t axis = step.attributes.Int("axis", 1).value_or(0);
  return axis == -1 || axis + 1 == static_cast<int64_t>(shape.size()) ? std::optional(other) : std::nullopt;
}

}  // namespace

Result<Product> RecogniseProduct(const OpSequence& sequence) {
  const auto is_float = [](const OpSequence::Value& value) { return value.type.dtype == DType::kFloat32 && value.type.ElementCount() > 0; };
  if (sequence.steps.empty() || sequence.results.size() != 1 || !std::all_of(sequence.values.begin(), sequence.values.end(), is_float))
    return Fail("openblas: a product of float32 tensors is wanted");
  std::span<const Step> steps = sequence.steps;
  const std::string& name = steps[0].op->name;
  if (name != "nn.dense" && name != "nn.matmul" && name != "nn.batch_matmul") return Fail("openblas: " + name + " is no product");
  Product product = name == "nn.dense" ? Dense(sequence, steps[0]) : COLLAGE_TRY(Batched(sequence, steps[0], name == "nn.batch_matmul"));
  product.result = steps[0].outputs[0];
  steps = steps.subspan(1);
  if (!steps.empty()) product.bias = BiasOf(sequence, steps[0], product.result);
  if (product.bias) {
    product.result = steps[0].outputs[0];
    steps = steps.subspan(1);
  }
  if (!steps.empty() && steps[0].op->name == "nn.relu" && steps[0].inputs[0] == product.result) {
    product.relu = true;
    product.result = steps[0].outputs[0];
    steps = steps.subspan(1);
  }
  if (!steps.empty() || product.result != sequence.results[0]) return Fail("openblas: only a bias and a ReLU may follow a product");
  return product;
}

}  // namespace collage::openblas
