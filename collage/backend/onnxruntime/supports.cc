#include "collage/backend/onnxruntime/supports.h"

#include <mutex>
#include <string>
#include <unordered_map>

#include "collage/backend/onnxruntime/session.h"
#include "collage/onnx/call_form.h"
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
  const Result<std::string> model = WriteOnnxCall(call);
  return model ? TrySession(*model) : Verdict::Reject(model.error().message);
}

}  // namespace collage::onnxruntime
