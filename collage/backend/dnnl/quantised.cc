#include "collage/backend/dnnl/quantised.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <dnnl.hpp>

#include "collage/backend/dnnl/chain.h"
#include "collage/op/axis_view.h"
#include "collage/op/quantised_weights.h"
#include "collage/tensor/narrow.h"

namespace collage::dnnl_backend {
namespace {

using Step = OpSequence::Step;

bool IsByte(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kUInt8; }

const Tensor* OneNumber(const OpSequence& sequence, size_t value) {
  const std::optional<Tensor>& constant = sequence.values[value].constant;
  return constant && constant->ElementCount() == 1 ? &*constant : nullptr;
}

/// What qnn.quantize and qnn.dequantize say of the integers `value`.
Result<Stored> StoredBy(const OpSequence& sequence, const Step& step, size_t value) {
  const Tensor* scale = OneNumber(sequence, step.inputs[1]);
  const Tensor* zero_point = OneNumber(sequence, step.inputs[2]);
  const DType dtype = sequence.values[value].type.dtype;
  if (!IsByte(dtype)) return Fail("oneDNN: integers of 8 bits are supported, not " + std::string(Name(dtype)));
  if (!scale || !zero_point) return Fail("oneDNN: one constant scale and zero point are wanted for data");
  return Stored{value, dtype, scale->ToDouble()[0], static_cast<int32_t>(zero_point->ToInt64()[0])};
}

/// An operand of a product: the numbers that it reads, and how they are stored.
struct Operand {
  size_t numbers;
  Stored stored;
};

/// Takes the integer ends off a sequence.
class Ends {
 public:
  Ends(const OpSequence& sequence, OpSequence& inside) : sequence_(sequence), inside_(inside) {}

  /// Gives the result.
  Result<Stored> Take() {
    if (sequence_.results.size() != 1) return Fail("oneDNN: one result is wanted");
    inside_ = sequence_;
    inside_.steps.clear();
    while (next_ < sequence_.steps.size() && COLLAGE_TRY(TakeOperandStep(sequence_.steps[next_]))) ++next_;
    COLLAGE_TRY_STATUS(TakeInside());
    const Stored result = COLLAGE_TRY(TakeResult());
    for (const Operand& operand : operands_)
      std::replace(inside_.parameters.begin(), inside_.parameters.end(), operand.stored.value, operand.numbers);
    return result;
  }

  /// One, or two where both matrices are computed.
  [[nodiscard]] const std::vector<Operand>& operands() const { return operands_; }

 private:
  /// False for a step that does something else.
  Result<bool> TakeOperandStep(const Step& step) {
    const OpSequence::Value& read = sequence_.values[step.inputs[0]];
    const DType made = sequence_.values[step.outputs[0]].type.dtype;
    if (step.op->name == "qnn.dequantize") {
      operands_.push_back({step.outputs[0], COLLAGE_TRY(StoredBy(sequence_, step, step.inputs[0]))});
      return true;
    }
    // ... or the integers less their zero point, in 32 bits.
    if (made != DType::kInt32) return false;
    if (step.op->name == "cast" && IsByte(read.type.dtype)) {
      operands_.push_back({step.outputs[0], {step.inputs[0], read.type.dtype}});
      has_integers_ = true;
      return true;
    }
    if (step.op->name != "subtract") return false;
    const Tensor* zero_point = OneNumber(sequence_, step.inputs[1]);
    const auto operand =
        std::find_if(operands_.begin(), operands_.end(), [&](const Operand& one) { return one.numbers == step.inputs[0]; });
    if (operand == operands_.end() || !zero_point) return Fail("oneDNN: one constant zero point is wanted for data");
    operand->stored.zero_point = static_cast<int32_t>(zero_point->ToInt64()[0]);
    operand->numbers = step.outputs[0];
    return true;
  }

  // What follows on 32-bit sums is exact in float32 too, as the product is bounded; that they are converted is no step then.
  Status TakeInside() {
    for (; next_ < sequence_.steps.size() && sequence_.steps[next_].op->name != "qnn.quantize"; ++next_) {
      Step step = sequence_.steps[next_];
      for (size_t& input : step.inputs) input = input == converted_to_ ? converted_from_ : input;
      const DType made = sequence_.values[step.outputs[0]].type.dtype;
      if (step.op->name == "cast" && has_integers_ && made == DType::kFloat32) {
        converted_from_ = step.inputs[0];
        converted_to_ = step.outputs[0];
        continue;
      }
      const bool may_be_whole = step.op->name.starts_with("nn.") || step.op->name == "add";
      if (made == DType::kInt32 && !may_be_whole) return Fail("oneDNN: " + step.op->name + " of 32-bit integers");
      inside_.steps.push_back(std::move(step));
    }
    for (OpSequence::Value& value : inside_.values) {
      if (has_integers_ && value.type.dtype == DType::kInt32) value.type.dtype = DType::kFloat32;
    }
    return {};
  }

  Result<Stored> TakeResult() {
    size_t& result = inside_.results[0];
    Stored stored{result, sequence_.values[result].type.dtype};
    if (next_ + 1 == sequence_.steps.size()) {
      const Step& last = sequence_.steps[next_];
      stored = COLLAGE_TRY(StoredBy(sequence_, last, last.outputs[0]));
      if (result != last.outputs[0]) return Fail("oneDNN: the result is not the end of the chain");
      result = last.inputs[0];
    } else if (next_ != sequence_.steps.size()) {
      return Fail("oneDNN: something follows what quantises");
    }
    if (result == converted_to_) result = converted_from_;
    return stored;
  }

  const OpSequence& sequence_;
  OpSequence& inside_;
  size_t next_ = 0;  // step
  std::vector<Operand> operands_;
  bool has_integers_ = false;
  // Nothing is the first value's own conversion: it is the function's parameter, or a constant.
  size_t converted_from_ = SIZE_MAX;
  size_t converted_to_ = SIZE_MAX;
};

/// Along which the channels of the result lie in the weights; nothing for what is no such product.
std::optional<size_t> WeightAxis(const Step& base, size_t rank) {
  if (base.op->name == "nn.conv2d") return 0;
  if (rank != 2) return std::nullopt;
  if (base.op->name == "nn.dense") return 0;
  if (base.op->name != "nn.matmul" || base.attributes.Bool("transpose_a", false).value_or(false)) return std::nullopt;
  return base.attributes.Bool("transpose_b", false).value_or(false) ? 0 : 1;
}

bool HasDotProducts() {
  const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  // Of those with VNNI in vectors of 256 bits, not all of the library's code uses it.
  return (isa & dnnl_cpu_isa_avx512_core_vnni) == dnnl_cpu_isa_avx512_core_vnni;
}

/// Processors without instructions for it add pairs of products in 16 bits, which saturate: two products of 255 and 64 do not. Signed data
/// is shifted there, and half of each weight's last bit lost.
Status CheckProcessor(const Stored& data, const Tensor& weights) {
  if (HasDotProducts()) return {};
  if (data.dtype != DType::kUInt8) return Fail("oneDNN: this processor has no products of signed 8-bit integers that are exact");
  constexpr int kNoOverflow = 64;
  const auto values = weights.Values<int8_t>();
  if (std::all_of(values.begin(), values.end(), [](int8_t weight) { return std::abs(weight) <= kNoOverflow; })) return {};
  return Fail("oneDNN: this processor's products of 8-bit integers saturate with weights beyond 64");
}

constexpr double kExact = 0x1p24;  // up to here float32 holds every integer

/// How far a stored integer may be from its zero point.
double Furthest(const Stored& stored) {
  const IntegerLimits limits = LimitsOfInteger(stored.dtype);
  return std::max(std::abs(static_cast<double>(limits.low) - stored.zero_point), static_cast<double>(limits.high) - stored.zero_point);
}

Status SumsAreInexact() { return Fail("oneDNN: sums may need more than the 24 bits in which they are exact on their way"); }

/// Sums go through float32 on their way; where they are the result, that must hold them.
Status CheckSums(const Stored& data, const Tensor& weights, size_t axis) {
  const double furthest = Furthest(data);
  const AxisView view(weights.shape(), axis);
  std::vector<double> sums(static_cast<size_t>(view.extent), 0);
  for (int64_t i = 0; i < weights.ElementCount(); ++i)
    sums[static_cast<size_t>(i / view.inner % view.extent)] += furthest * std::abs(weights.Data<int8_t>()[i]);
  if (std::all_of(sums.begin(), sums.end(), [&](double sum) { return sum <= kExact; })) return {};
  return SumsAreInexact();
}

/// A first product with a constant, for each channel or for all, is one with what sums are worth.
void TakeScaling(Chain& chain, std::vector<float>& scales, bool has_channels) {
  if (chain.post_ops.empty()) return;
  const PostOp& first = chain.post_ops[0];
  std::vector<double> factors(scales.size(), first.alpha);
  if (first.algorithm == dnnl::algorithm::binary_mul) {
    const Shape& shape = chain.ShapeOf(chain.result);
    const size_t axis = chain.base->op->name == "nn.conv2d" ? 1 : shape.size() - 1;
    const bool is_of_channels =
        has_channels && chain.IsConstant(*first.operand) && IsChannelVector(chain.ShapeOf(*first.operand), shape.size(), axis, shape[axis]);
    if (!is_of_channels) return;
    factors = chain.sequence->values[*first.operand].constant->ToDouble();
  } else if (first.algorithm != dnnl::algorithm::eltwise_linear || first.beta != 0) {
    return;
  }
  for (size_t i = 0; i < scales.size(); ++i) scales[i] *= static_cast<float>(factors[i]);
  chain.post_ops.erase(chain.post_ops.begin());
}

/// Numbers become integers as they are stored, rounded and limited. Two linear operations in a row are one: the library's code for products
/// of matrices gets the second wrong.
void AddQuantising(Chain& chain, const Stored& result) {
  if (!IsByte(result.dtype)) return;
  const double factor = 1 / result.scale;
  double shift = result.zero_point;
  PostOp linear{dnnl::algorithm::eltwise_linear, static_cast<float>(factor), 0, std::nullopt};
  if (!chain.post_ops.empty() && chain.post_ops.back().algorithm == linear.algorithm) {
    linear.alpha = static_cast<float>(factor * static_cast<double>(chain.post_ops.back().alpha));
    shift += factor * static_cast<double>(chain.post_ops.back().beta);
    chain.post_ops.pop_back();
  }
  linear.beta = static_cast<float>(shift);
  chain.post_ops.push_back(linear);
}

/// A product of two computed matrices, of which the library takes the second as signed integers only. Bytes and their zero point may both
/// be less 128: differences stay.
Status TakePair(Chain& chain, const OpSequence& inside, const std::vector<Operand>& operands, QuantisedEnds& ends) {
  const bool is_product = chain.base->op->name == "nn.matmul" || chain.base->op->name == "nn.batch_matmul";
  if (!is_product || chain.bias) return Fail("oneDNN: no product of two matrices of integers");
  const auto operand = [&](size_t numbers) -> Result<Stored> {
    const bool is_given = std::find(inside.parameters.begin(), inside.parameters.end(), numbers) != inside.parameters.end();
    for (const Operand& one : operands) {
      if (one.numbers == numbers && is_given) return one.stored;
    }
    return Fail("oneDNN: no product of two matrices of integers");
  };
  ends.data = COLLAGE_TRY(operand(chain.base->inputs[0]));
  ends.right = COLLAGE_TRY(operand(chain.base->inputs[1]));
  // What is not known cannot be told not to saturate.
  if (!HasDotProducts()) return Fail("oneDNN: this processor's products of 8-bit integers may saturate");
  ends.makes_right_signed = ends.right->dtype == DType::kUInt8;
  if (ends.makes_right_signed) ends.right = Stored{ends.right->value, DType::kInt8, ends.right->scale, ends.right->zero_point - 128};
  ends.sum_scales = {static_cast<float>(ends.data.scale * ends.right->scale)};
  const bool is_transposed = chain.base->attributes.Bool("transpose_a", false).value_or(false);
  const Shape& left = chain.ShapeOf(chain.base->inputs[0]);
  const auto depth = static_cast<double>(left[left.size() - (is_transposed ? 2 : 1)]);
  if (ends.result.dtype == DType::kInt32 && depth * Furthest(ends.data) * Furthest(*ends.right) > kExact) return SumsAreInexact();
  return {};
}

size_t UsesOf(const OpSequence& sequence, size_t value) {
  size_t uses = 0;
  for (const Step& step : sequence.steps) uses += static_cast<size_t>(std::count(step.inputs.begin(), step.inputs.end(), value));
  return uses;
}

/// What follows the sums becomes scales and post-operations.
Result<Chain> Quantised(Chain chain, QuantisedEnds ends) {
  ends.output_scales = ends.sum_scales;
  TakeScaling(chain, ends.output_scales, /*has_channels=*/!ends.right);
  if (ends.result.dtype == DType::kInt32 && !chain.post_ops.empty()) return Fail("oneDNN: 32-bit sums take a bias only");
  AddQuantising(chain, ends.result);
  chain.quantised = std::move(ends);
  return chain;
}

}  // namespace

bool IsQuantised(const OpSequence& sequence) {
  if (sequence.steps.empty()) return false;
  const Step& first = sequence.steps[0];
  const bool makes_numbers =
      first.op->name == "qnn.dequantize" || (first.op->name == "cast" && sequence.values[first.outputs[0]].type.dtype == DType::kInt32);
  return makes_numbers && IsByte(sequence.values[first.inputs[0]].type.dtype);
}

Result<Chain> ParseQuantised(const OpSequence& sequence, OpSequence& inside) {
  Ends taken(sequence, inside);
  QuantisedEnds ends;
  ends.result = COLLAGE_TRY(taken.Take());
  Chain chain = COLLAGE_TRY(ParseChain(inside));
  if (!chain.base || chain.base->inputs.size() != 2) return Fail("oneDNN: no product of integers");
  if (taken.operands().size() == 2) {
    COLLAGE_TRY_STATUS(TakePair(chain, inside, taken.operands(), ends));
    return Quantised(std::move(chain), std::move(ends));
  }
  ends.data = taken.operands().at(0).stored;
  const std::optional<Tensor>& weights = inside.values[chain.base->inputs[1]].constant;
  const std::optional<size_t> axis = weights ? WeightAxis(*chain.base, weights->shape().size()) : std::nullopt;
  const size_t numbers = chain.base->inputs[0];
  const bool reads_data = std::find(inside.parameters.begin(), inside.parameters.end(), numbers) != inside.parameters.end();
  if (!axis || !reads_data || UsesOf(inside, numbers) != 1) return Fail("oneDNN: no product of integers with constant weights");
  const std::optional<QuantisedWeights> whole = QuantiseExactly(*weights, *axis);
  if (!whole) return Fail("oneDNN: weights are no whole multiples of one step a channel");
  COLLAGE_TRY_STATUS(CheckProcessor(ends.data, whole->values));
  ends.weight_axis = *axis;
  for (const float scale : whole->scales) ends.sum_scales.push_back(static_cast<float>(ends.data.scale * static_cast<double>(scale)));
  if (ends.result.dtype == DType::kInt32) COLLAGE_TRY_STATUS(CheckSums(ends.data, whole->values, *axis));
  return Quantised(std::move(chain), std::move(ends));
}

Tensor WholeWeights(const Tensor& weights, size_t axis) { return QuantiseExactly(weights, axis)->values; }

Tensor BiasOfSums(const Tensor& bias, const std::vector<float>& sum_scales) {
  const std::vector<double> given = bias.ToDouble();
  Tensor result(TensorType{{static_cast<int64_t>(given.size())}, DType::kFloat32});
  for (size_t i = 0; i < given.size(); ++i)
    result.MutableData<float>()[i] = static_cast<float>(given[i] / static_cast<double>(sum_scales[i]));
  return result;
}

}  // namespace collage::dnnl_backend
