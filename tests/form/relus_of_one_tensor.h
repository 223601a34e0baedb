#pragma once

#include <vector>

#include "collage/form/rules.h"

namespace collage {

/// relus of one tensor as one relu of its concatenation with itself.
inline Result<std::vector<Expr>> AsPartsOfOneRelu(const std::vector<Match>& matches) {
  const std::vector<Expr> copies(matches.size(), matches.front().Find("data"));
  const Expr all = COLLAGE_TRY(CallOp("nn.relu", {COLLAGE_TRY(CallOp("concatenate", {MakeTuple(copies)}))}));
  const Expr parts = COLLAGE_TRY(CallOp("split", {all}, {{"indices_or_sections", static_cast<int64_t>(matches.size())}}));
  std::vector<Expr> results;
  for (size_t i = 0; i < matches.size(); ++i) results.push_back(COLLAGE_TRY(MakeTupleGetItem(parts, i)));
  return results;
}

}  // namespace collage
