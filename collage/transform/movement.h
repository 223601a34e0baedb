#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// A permutation of dimensions, or a view that inserts or drops some of extent 1.
struct Movement {
  static constexpr int64_t kInserted = -1;

  std::vector<int64_t> source;  ///< for each dimension of the result that of the argument, or kInserted
  int64_t source_rank = 0;

  [[nodiscard]] bool IsView() const;
  [[nodiscard]] Movement Inverse() const;
  /// Calls of transpose, or of squeeze and expand_dims, on `data`.
  [[nodiscard]] Result<Expr> Of(Expr data, const Origin& origin) const;

  friend auto operator<=>(const Movement&, const Movement&) = default;
};

/// Of a call of transpose, squeeze or expand_dims; nothing of other expressions, and of a transpose that keeps the order.
std::optional<Movement> MovementOf(const Expr& expr);

}  // namespace collage
