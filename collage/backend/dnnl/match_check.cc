#include "collage/backend/dnnl/match_check.h"

#include <omp.h>

#include "collage/backend/dnnl/plan_cache.h"
#include "collage/backend/match_function.h"
#include "collage/ir/op_sequence.h"

namespace collage::dnnl_backend {
namespace {

bool HasConstantOutside(const Match& match) {
  for (const auto& [name, expr] : match.captures) {
    if (name.starts_with(kOutside) && expr->As<Constant>()) return true;
  }
  return false;
}

Result<bool> CanRun(const Match& match) {
  const Expr function = COLLAGE_TRY(FunctionOf(match));
  const OpSequence sequence = COLLAGE_TRY(ToOpSequence(*function->As<Function>()));
  if (IsQuantised(sequence)) {
    OpSequence inside;
    COLLAGE_TRY(ParseQuantised(sequence, inside));
  } else if (!ReadLayerNormalization(sequence) && !RecogniseShuffle(sequence)) {
    COLLAGE_TRY(ParseChain(sequence));
  }
  return !CachedPlans(sequence, omp_get_max_threads())->empty();
}

}  // namespace

Verdict CheckMatch(const Match& match) {
  if (HasConstantOutside(match)) return Verdict::Reject("oneDNN: an operand is a constant, which another rule takes inside");
  try {
    const Result<bool> can_run = CanRun(match);
    if (!can_run) return Verdict::Reject(can_run.error().message);
    return *can_run ? Verdict::Accept() : Verdict::Reject("oneDNN: no primitive for these shapes, attributes or post-operations");
  } catch (const std::exception& error) {
    return Verdict::Reject(std::string("oneDNN: ") + error.what());
  }
}

}  // namespace collage::dnnl_backend
