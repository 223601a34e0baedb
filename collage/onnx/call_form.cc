#include "collage/onnx/call_form.h"

#include <mutex>
#include <unordered_map>

#include "collage/ir/structural.h"
#include "collage/onnx/writer.h"

namespace collage {
namespace {

Result<Expr> Isolate(const Call& call) {
  constexpr size_t kSmallBytes = 512;
  std::vector<Expr> parameters;
  std::vector<Expr> args;
  for (const Expr& arg : call.args) {
    const Constant* constant = arg->As<Constant>();
    if (constant && constant->value.ByteCount() <= kSmallBytes) {
      args.push_back(arg);
      continue;
    }
    parameters.push_back(MakeVar("x", arg->type()));
    args.push_back(parameters.back());
  }
  Expr body = COLLAGE_TRY(MakeCall(call.callee, std::move(args), call.attributes));
  // The moving statistics, which a batch normalisation hands through, have no ONNX form.
  if (IsCallOf(body, "nn.batch_norm")) body = COLLAGE_TRY(MakeTupleGetItem(std::move(body), 0));
  return MakeFunction(std::move(parameters), std::move(body));
}

}  // namespace

Result<std::string> WriteOnnxCall(const Call& call) {
  const Expr function = COLLAGE_TRY(Isolate(call));
  const uint64_t hash = ContentHash(function);
  // Layers repeat themselves, and each call is asked about once for every region that holds it.
  static std::mutex mutex;
  static auto* written = new std::unordered_map<uint64_t, Result<std::string>>;
  const std::lock_guard lock(mutex);
  auto at = written->find(hash);
  if (at == written->end()) at = written->emplace(hash, WriteOnnx(*function->As<Function>())).first;
  return at->second;
}

}  // namespace collage
