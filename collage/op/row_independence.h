#pragma once

// Which operators compute each row of their result from that row of their arguments alone, a row being an element of the leading
// dimension. What consists of such calls may be computed some rows at a time, in a program of a fixed number of them, whatever their number
// is in a run (docs/design/extents.md).

#include <cstdint>
#include <span>

#include "collage/ir/expr.h"

namespace collage {

enum class RowUse : uint8_t {
  kWhole,    ///< the same for all rows
  kRows,     ///< of a leading dimension of rows, none of which depends on another; a tuple: all that is read of it
  kNeither,  ///< nothing that is known
};

/// Of a call, a tuple or a projection, whose arguments (fields, tuple) are used as `arguments` say. `rows` is the number of rows in their
/// types, two at least. Operators that the table does not have answer kNeither where an argument has rows.
RowUse RowUseOf(const Expr& expr, std::span<const RowUse> arguments, int64_t rows);

/// The same of the result of a function of such expressions, constants being whole; `parameters` has one for each parameter.
RowUse RowUseOfResult(const Expr& function, std::span<const RowUse> parameters, int64_t rows);

}  // namespace collage
