#include "collage/backend/onnxruntime/supports.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "collage/backend/onnxruntime/session.h"
#include "collage/onnx/call_form.h"
#include "collage/op/col2im.h"
#include "collage/tensor/narrow.h"

namespace collage::onnxruntime {
namespace {

/// 16-bit floats are computed in float32 between casts that its optimizer moves about: what is rounded where is not what operators define.
Verdict CheckTypes(const Type& type) {
  for (const TensorType& tensor : FlattenTensors(type)) {
    if (tensor.ElementCount() == 0) return Verdict::Reject("a tensor without elements");
    if (IsNarrow(tensor.dtype)) return Verdict::Reject("it does not compute exactly in " + std::string(Name(tensor.dtype)));
  }
  return Verdict::Accept();
}

/// Whether a divisor may be zero, where the operators give zero and the library an error.
bool MayDivideByZero(const Call& call) {
  const std::string& op = call.callee->As<Op>()->def->name;
  if ((op != "divide" && op != "floor_mod") || IsFloatingPoint(call.args[1]->type().AsTensor()->dtype)) return false;
  const Constant* divisor = call.args[1]->As<Constant>();
  if (!divisor) return true;
  // Zero is all bits zero in every type of integers.
  const size_t bytes = ByteSize(divisor->value.dtype());
  const std::vector<std::byte> zero(bytes);
  for (size_t at = 0; at < divisor->value.ByteCount(); at += bytes) {
    if (std::equal(zero.begin(), zero.end(), divisor->value.Bytes() + at)) return true;
  }
  return false;
}

/// In other than two dimensions it reads dilated blocks at the wrong places (1.31.0).
bool MisplacesBlocks(const Call& call) {
  if (call.callee->As<Op>()->def->name != "nn.col2im") return false;
  const Result<Col2Im> col2im = ReadCol2Im(*call.args[0]->type().AsTensor(), call.attributes);
  return col2im->image.size() > 2 && std::ranges::any_of(col2im->dilation, [](int64_t dilation) { return dilation != 1; });
}

Verdict TrySession(const std::string& model) {
  static std::mutex mutex;
  static auto* known = new std::unordered_map<std::string, Verdict>;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = known->try_emplace(model, Verdict::Accept());
  if (is_new) {
    if (const Status tried = HasKernelsFor(model); !tried) at->second = Verdict::Reject(tried.error().message);
  }
  return at->second;
}

}  // namespace

Verdict Supports(const Expr& expr) {
  if (!CalledOp(expr)) return Verdict::Reject("not a call of an operator");
  const Call& call = *expr->As<Call>();
  Verdict types = CheckTypes(expr->type());
  for (size_t i = 0; i < call.args.size() && types.accepted; ++i) types = CheckTypes(call.args[i]->type());
  if (!types.accepted) return types;
  if (MayDivideByZero(call)) return Verdict::Reject("a divisor may be zero, where it stops");
  if (MisplacesBlocks(call)) return Verdict::Reject("it misplaces dilated blocks of more than two dimensions");
  const Result<std::string> model = WriteOnnxCall(call);
  return model ? TrySession(*model) : Verdict::Reject(model.error().message);
}

}  // namespace collage::onnxruntime
