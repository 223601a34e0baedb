#include "collage/onnx/fold.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "collage/ir/call_origins.h"
#include "collage/ir/call_work.h"

namespace collage::onnx_io {
namespace {

constexpr double kMaximalFoldedFlops = 2e9;
constexpr int64_t kMaximalElements = int64_t{1} << 40;
constexpr int64_t kMaximalExtent = int64_t{1} << 31;

/// Appends the tensors of a constant or of a tuple of constants; false when something is not constant.
bool CollectConstants(const Expr& expr, std::vector<Tensor>& tensors) {
  if (const Tensor* value = ConstantValue(expr)) {
    tensors.push_back(*value);
    return true;
  }
  const Tuple* tuple = expr->As<Tuple>();
  return tuple != nullptr &&
         std::all_of(tuple->fields.begin(), tuple->fields.end(), [&](const Expr& field) { return CollectConstants(field, tensors); });
}

}  // namespace

const Tensor* ConstantValue(const Expr& expr) {
  const Constant* constant = expr->As<Constant>();
  return constant == nullptr ? nullptr : &constant->value;
}

Status CheckExtents(const Shape& shape) {
  int64_t elements = 1;
  for (int64_t extent : shape) {
    if (extent < 0) return Fail("the shape " + ToString(shape) + " has a negative extent");
    if (extent > kMaximalExtent || (extent > 0 && elements > kMaximalElements / extent))
      return Fail("a tensor of shape " + ToString(shape) + " is too large");
    elements *= std::max<int64_t>(extent, 1);
  }
  return {};
}

Status ConstantFolder::Reserve(double bytes) {
  reserved_bytes_ += bytes;
  if (reserved_bytes_ > limit_)
    return Fail("the constants that the model computes exceed " + std::to_string(std::lround(limit_ / 1e6)) + " MB");
  return {};
}

bool ConstantFolder::MayFold(const OpDef& op, const Expr& call) const {
  if (!op.reference) return false;
  if (!limits_work_) return true;
  return WorkOfCall(call).flops <= kMaximalFoldedFlops;
}

Result<Expr> ConstantFolder::Fold(const OpDef& op, const std::vector<Expr>& args, const Expr& call) {
  const Type& type = call->type();
  std::vector<Tensor> inputs;
  for (const Expr& arg : args) CollectConstants(arg, inputs);
  std::vector<Tensor> outputs;
  for (const TensorType& tensor : FlattenTensors(type)) {
    if (op.is_view) {
      outputs.push_back(inputs[0].Reshaped(tensor.shape));
      continue;
    }
    COLLAGE_TRY_STATUS(Reserve(static_cast<double>(tensor.ByteCount())));
    outputs.emplace_back(tensor);
  }
  if (!op.is_view) op.reference(inputs, call->As<collage::Call>()->attributes, outputs);
  const Origin origin = OriginOfFolded(call);
  if (type.AsTensor() != nullptr) return WithOrigin(MakeConstant(std::move(outputs[0])), origin);
  std::vector<Expr> fields;
  for (Tensor& output : outputs) fields.push_back(WithOrigin(MakeConstant(std::move(output)), origin));
  return MakeTuple(std::move(fields));
}

Result<Expr> ConstantFolder::Call(const OpDef* op, const std::vector<Expr>& args, const Attributes& attributes, const Origin& origin) {
  Expr call = COLLAGE_TRY(MakeCall(op, args, attributes, origin));
  for (const TensorType& tensor : FlattenTensors(call->type())) COLLAGE_TRY_STATUS(CheckExtents(tensor.shape));
  std::vector<Tensor> constants;
  for (const Expr& arg : args) {
    if (!CollectConstants(arg, constants)) return call;
  }
  if (!MayFold(*op, call)) return call;
  return Fold(*op, args, call);
}

}  // namespace collage::onnx_io
