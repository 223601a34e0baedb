#include "collage/backend/openvino/supports.h"

#include <string>

#include "collage/onnx/call_form.h"

namespace collage::openvino {
namespace {

using Types = std::vector<TensorType>;

void Flatten(const Type& type, Types& tensors) {
  if (const TensorType* tensor = type.AsTensor()) tensors.push_back(*tensor);
  // Operators take and give tensors and flat tuples of them.
  if (const TupleType* tuple = type.AsTuple()) {
    for (const Type& field : tuple->fields) {
      if (const TensorType* tensor = field.AsTensor()) tensors.push_back(*tensor);
    }
  }
}

bool IsIndexOperand(const std::string& op, size_t argument) { return argument == 1 && (op == "take" || op == "gather_nd"); }

/// Integers of 8 bits stand for numbers between the operators that make them so; nothing else computes with them.
bool IsQuantised(const std::string& op, const TensorType& type) {
  return type.ElementCount() > 0 && (op == "qnn.quantize" || op == "qnn.dequantize") &&
         (type.dtype == DType::kInt8 || type.dtype == DType::kUInt8);
}

Verdict CheckType(const TensorType& type, bool is_index) {
  if (type.ElementCount() == 0) return Verdict::Reject("a tensor without elements");
  if (type.dtype == DType::kFloat32 || type.dtype == DType::kBool) return Verdict::Accept();
  if (is_index && (type.dtype == DType::kInt32 || type.dtype == DType::kInt64)) return Verdict::Accept();
  return Verdict::Reject("the CPU plugin does not compute exactly in " + std::string(Name(type.dtype)));
}

/// Integers are computed in 32 bits or in float32, whatever their type says: they are taken as indices only.
Verdict CheckTypes(const Call& call, const std::string& op, const Type& result) {
  for (size_t i = 0; i < call.args.size(); ++i) {
    Types tensors;
    Flatten(call.args[i]->type(), tensors);
    const bool exact_cast = op == "cast" && !tensors.empty() && tensors[0].dtype == DType::kInt32;
    for (const TensorType& type : tensors) {
      if (IsQuantised(op, type)) continue;
      Verdict verdict = CheckType(type, IsIndexOperand(op, i) || exact_cast);
      if (!verdict.accepted) return verdict;
    }
  }
  Types results;
  Flatten(result, results);
  for (const TensorType& type : results) {
    if (IsQuantised(op, type)) continue;
    Verdict verdict = CheckType(type, op == "argmax" || op == "argmin");
    if (!verdict.accepted) return verdict;
  }
  return Verdict::Accept();
}

/// What the library has no code for, or computes otherwise than the operator is defined.
Verdict CheckOperator(const std::string& op, const Call& call) {
  if (op == "max" || op == "min") return Verdict::Reject("of infinities alone it gives the largest finite number");
  if (op == "floor_mod") return Verdict::Reject("remainders by a rounded quotient");
  if (op == "nn.pad" && !call.args[1]->As<Constant>()) return Verdict::Reject("pads with zeros where the value is computed");
  if (op == "nn.col2im" && call.attributes.Ints("output_size", {})->size() > 2) return Verdict::Reject("has blocks of two dimensions only");
  if (op == "linalg.det" || op == "linalg.inv") return Verdict::Reject("has neither determinants nor inverses");
  return Verdict::Accept();
}

}  // namespace

Verdict Supports(const Expr& expr) {
  const OpDef* op = CalledOp(expr);
  if (!op) return Verdict::Reject("not a call of an operator");
  const Call& call = *expr->As<Call>();
  const bool has_constants = call.args.size() != 3 || (call.args[1]->As<Constant>() && call.args[2]->As<Constant>());
  if (op->name.starts_with("qnn.") && !has_constants) return Verdict::Reject("a scale or a zero point that is no constant");
  if (Verdict verdict = CheckOperator(op->name, call); !verdict.accepted) return verdict;
  Verdict types = CheckTypes(call, op->name, expr->type());
  if (!types.accepted) return types;
  const Result<std::string> model = WriteOnnxCall(call);
  return model ? Verdict::Accept() : Verdict::Reject(model.error().message);
}

}  // namespace collage::openvino
