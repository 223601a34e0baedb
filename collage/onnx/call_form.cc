#include "collage/onnx/call_form.h"

#include <mutex>
#include <unordered_map>

#include "collage/ir/structural.h"
#include "collage/onnx/writer.h"
#include "collage/support/hash.h"

namespace collage {
namespace {

/// Constants that say what a call does, such as axes, and not weights.
bool IsSmallConstant(const Expr& arg) {
  constexpr size_t kSmallBytes = 512;
  const Constant* constant = arg->As<Constant>();
  return constant && constant->value.ByteCount() <= kSmallBytes;
}

/// Of what Isolate looks at.
uint64_t HashOf(const Call& call) {
  uint64_t hash = HashCombine(StructuralHash(call.callee), call.attributes.Hash());
  for (const Expr& arg : call.args) {
    const bool is_constant = IsSmallConstant(arg);
    hash = HashCombine(HashCombine(hash, is_constant ? 1 : 0), is_constant ? ContentHash(arg) : HashBytes(ToString(arg->type())));
  }
  return hash;
}

Result<Expr> Isolate(const Call& call) {
  std::vector<Expr> parameters;
  std::vector<Expr> args;
  for (const Expr& arg : call.args) {
    if (IsSmallConstant(arg)) {
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
  const uint64_t hash = HashOf(call);
  // Layers repeat themselves, and each call is asked about once for every region that holds it.
  static std::mutex mutex;
  static auto* written = new std::unordered_map<uint64_t, Result<std::string>>;
  const std::lock_guard lock(mutex);
  auto at = written->find(hash);
  if (at == written->end()) {
    const Expr function = COLLAGE_TRY(Isolate(call));
    at = written->emplace(hash, WriteOnnx(*function->As<Function>())).first;
  }
  return at->second;
}

}  // namespace collage
