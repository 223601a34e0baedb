#include "collage/backend/native/supports.h"

#include <algorithm>
#include <unordered_set>

#include "collage/op/col2im.h"
#include "collage/op/rules.h"
#include "collage/tensor/narrow.h"

namespace collage::native {
namespace {

const std::unordered_set<std::string_view>& Pointwise() {
  static const std::unordered_set<std::string_view> names = {"abs",
                                                             "negative",
                                                             "exp",
                                                             "log",
                                                             "sqrt",
                                                             "rsqrt",
                                                             "erf",
                                                             "sin",
                                                             "cos",
                                                             "ceil",
                                                             "floor",
                                                             "round",
                                                             "sign",
                                                             "tanh",
                                                             "sigmoid",
                                                             "nn.relu",
                                                             "copy",
                                                             "logical_not",
                                                             "add",
                                                             "subtract",
                                                             "multiply",
                                                             "divide",
                                                             "floor_mod",
                                                             "power",
                                                             "maximum",
                                                             "minimum",
                                                             "equal",
                                                             "not_equal",
                                                             "greater",
                                                             "greater_equal",
                                                             "less",
                                                             "less_equal",
                                                             "logical_and",
                                                             "logical_or",
                                                             "where",
                                                             "cast",
                                                             "clip",
                                                             "nn.leaky_relu",
                                                             "nn.prelu",
                                                             "nn.bias_add",
                                                             "zeros",
                                                             "ones",
                                                             "zeros_like",
                                                             "ones_like",
                                                             "full",
                                                             "nn.batch_norm",
                                                             "qnn.quantize",
                                                             "qnn.dequantize",
                                                             "reshape",
                                                             "squeeze",
                                                             "expand_dims",
                                                             "transpose",
                                                             "nn.batch_flatten",
                                                             "broadcast_to",
                                                             "tile",
                                                             "concatenate",
                                                             "stack",
                                                             "split",
                                                             "strided_slice",
                                                             "take",
                                                             "gather_nd",
                                                             "nn.pad",
                                                             "nn.depth_to_space",
                                                             "nn.space_to_depth",
                                                             "nn.upsampling",
                                                             "nn.lrn",
                                                             "nn.softmax",
                                                             "nn.log_softmax",
                                                             "nn.layer_norm",
                                                             "nn.instance_norm",
                                                             "nn.group_norm",
                                                             "sum",
                                                             "mean",
                                                             "max",
                                                             "min",
                                                             "prod",
                                                             "argmax",
                                                             "argmin",
                                                             "nn.global_avg_pool2d",
                                                             "nn.global_max_pool2d",
                                                             "nn.max_pool2d",
                                                             "nn.col2im"};
  return names;
}

// Operators whose code has been written for floating point data only.
const std::unordered_set<std::string_view>& FloatOnly() {
  static const std::unordered_set<std::string_view> names = {"nn.avg_pool2d", "nn.conv2d", "nn.conv2d_transpose",
                                                             "nn.dense",      "nn.matmul", "nn.batch_matmul"};
  return names;
}

Verdict SupportsTensor(const TensorType& type) {
  constexpr int64_t kMostElements = int64_t{1} << 30;  // generated code counts in 32 bits
  if (IsNarrow(type.dtype)) return Verdict::Reject("tensors of " + std::string(Name(type.dtype)));
  if (type.ElementCount() == 0) return Verdict::Reject("an empty tensor");
  if (type.ElementCount() > kMostElements) return Verdict::Reject("a tensor of more than 2^30 elements");
  return Verdict::Accept();
}

// What an operator's code leaves out.
Verdict SupportsAttributes(const OpDef& op, const Call& call) {
  const TensorType* data = call.args.empty() ? nullptr : call.args[0]->type().AsTensor();
  if ((op.name == "nn.instance_norm" || op.name == "nn.group_norm") && AxisAttribute(call.attributes, "axis", 1, data->shape.size()) != 1)
    return Verdict::Reject(op.name + " with channels in another dimension than the second");
  if (op.name == "mean" && !IsFloatingPoint(data->dtype)) return Verdict::Reject("mean of integers");
  if (op.name == "floor_mod" && IsFloatingPoint(data->dtype)) return Verdict::Reject("remainders by a rounded quotient");
  if (op.name == "qnn.quantize" && ByteSize(call.args[2]->type().AsTensor()->dtype) > 2)
    return Verdict::Reject("qnn.quantize to integers that float32 does not hold");
  constexpr int64_t kMostNeighbours = 32;
  if (op.name == "nn.lrn" && IntAttribute(call.attributes, "size", 5) > kMostNeighbours)
    return Verdict::Reject("nn.lrn over many channels");
  if (op.name == "nn.conv2d_transpose") {
    for (int64_t dilation : IntsAttribute(call.attributes, "dilation", {1, 1})) {
      if (dilation != 1) return Verdict::Reject("nn.conv2d_transpose with a dilated kernel");
    }
  }
  constexpr int64_t kMostTaps = 64;  // the window is written out
  if (op.name == "nn.col2im") {
    const Col2Im col2im = *ReadCol2Im(*data, call.attributes);
    int64_t overlap = 1;
    for (size_t d = 0; d < col2im.image.size(); ++d) overlap *= std::min(TapsAlong(col2im, d).most, kMostTaps + 1);
    if (overlap > kMostTaps) return Verdict::Reject("nn.col2im where more than 64 blocks overlap");
  }
  if (op.name == "nn.max_pool2d" || op.name == "nn.avg_pool2d") {
    const std::vector<int64_t> window = IntsAttribute(call.attributes, "pool_size", {1, 1});
    if (window.front() * window.back() > kMostTaps) return Verdict::Reject(op.name + " with a window of more than 64 elements");
  }
  return Verdict::Accept();
}

}  // namespace

Verdict Supports(const Expr& expr) {
  const Call* call = expr->As<Call>();
  const OpDef* op = CalledOp(expr);
  if (!op) return Verdict::Reject("not a call of an operator");
  const bool float_only = FloatOnly().contains(op->name);
  if (!float_only && !Pointwise().contains(op->name)) return Verdict::Reject("no code for " + op->name);
  if (Verdict verdict = SupportsAttributes(*op, *call); !verdict.accepted) return verdict;
  std::vector<TensorType> types = FlattenTensors(expr->type());
  for (const Expr& argument : call->args) {
    for (TensorType& type : FlattenTensors(argument->type())) types.push_back(std::move(type));
  }
  for (const TensorType& type : types) {
    if (Verdict verdict = SupportsTensor(type); !verdict.accepted) return verdict;
    if (float_only && type.dtype != DType::kFloat32) return Verdict::Reject(op->name + " of " + std::string(Name(type.dtype)));
  }
  return Verdict::Accept();
}

Verdict SupportsSequence(const OpSequence& sequence) {
  constexpr size_t kMostSteps = 512;  // expressions nest as deeply as operators are chained
  if (sequence.steps.size() > kMostSteps) return Verdict::Reject("more than 512 operators");
  for (const OpSequence::Step& step : sequence.steps) {
    if (Verdict verdict = Supports(step.call); !verdict.accepted) return verdict;
  }
  for (const auto* tensors : {&sequence.parameters, &sequence.results}) {
    for (size_t value : *tensors) {
      if (Verdict verdict = SupportsTensor(sequence.values[value].type); !verdict.accepted) return verdict;
    }
  }
  return Verdict::Accept();
}

}  // namespace collage::native
