#include "collage/ir/call_origins.h"

#include "collage/ir/visit.h"

namespace collage {

Origin OriginOfFolded(const Expr& call) {
  std::vector<Origin> origins = {call->origin()};
  std::vector<const Expr*> pending;
  for (const Expr& argument : call->As<Call>()->args) pending.push_back(&argument);
  while (!pending.empty()) {
    const Expr& argument = *pending.back();
    pending.pop_back();
    if (argument->As<Constant>()) origins.push_back(argument->origin());
    const Tuple* tuple = argument->As<Tuple>();
    for (size_t i = 0; tuple && i < tuple->fields.size(); ++i) pending.push_back(&tuple->fields[i]);
  }
  return Origin::Union(origins);
}

Origin OriginOfCalls(const Expr& function) {
  std::vector<Origin> origins;
  PostOrder(function, [&](const Expr& expr) {
    if (CalledOp(expr)) origins.push_back(expr->origin());
  });
  return Origin::Union(origins);
}

}  // namespace collage
