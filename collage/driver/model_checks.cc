#include "collage/driver/model_checks.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <string>

#include "collage/ir/call_names.h"
#include "collage/ir/visit.h"

namespace collage {
namespace {

/// As a number that cannot overflow.
double BytesOf(const Type& type) {
  double bytes = 0;
  for (const TensorType& tensor : FlattenTensors(type)) {
    double elements = 1;
    for (const int64_t extent : tensor.shape) elements *= static_cast<double>(extent);
    bytes += elements * static_cast<double>(ByteSize(tensor.dtype));
  }
  return bytes;
}

std::string TypesOf(const Type& type) {
  std::string text;
  for (const TensorType& tensor : FlattenTensors(type)) text += (text.empty() ? "" : ", ") + ToString(tensor);
  return text;
}

std::string Gigabytes(double bytes) { return fmt::format("{:.2f} GiB", bytes / 0x1p30); }

Status CheckFunction(const std::string& name, const Expr& function, double available) {
  Status status;
  const CallNames names(function);
  const Function& literal = *function->As<Function>();
  double ends = BytesOf(literal.result_type);
  const auto fail = [&](const std::string& what, double bytes) {
    if (status) status = Fail(what + ", which needs " + Gigabytes(bytes) + " of memory; there are " + Gigabytes(available));
  };
  for (const Expr& parameter : literal.parameters) {
    const double bytes = BytesOf(parameter->type());
    ends += bytes;
    if (bytes > available) fail("input '" + parameter->As<Var>()->name + "' is " + TypesOf(parameter->type()), bytes);
  }
  PostOrder(function, [&](const Expr& expr) {
    const OpDef* op = CalledOp(expr);
    if (!op || !status) return;
    // A view moves nothing.
    double bytes = op->is_view ? 0 : BytesOf(expr->type());
    for (const Expr& arg : expr->As<Call>()->args) bytes += BytesOf(arg->type());
    if (bytes > available) fail(names.Describe(expr) + " makes " + TypesOf(expr->type()) + " of its operands", bytes);
  });
  if (ends > available) fail("the inputs and outputs of '" + name + "' are together", ends);
  return status;
}

}  // namespace

Status CheckMemory(const IRModule& module, size_t available) {
  for (const auto& [name, function] : module.functions()) {
    if (function->As<Function>()) COLLAGE_TRY_STATUS(CheckFunction(name, function, static_cast<double>(available)));
  }
  return {};
}

}  // namespace collage
