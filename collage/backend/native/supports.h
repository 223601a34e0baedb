#pragma once

#include "collage/ir/op_sequence.h"
#include "collage/pattern/rule.h"

namespace collage::native {

/// Can code be generated for this call of an operator? Knows the operators by name, so that the answer needs no generator.
Verdict Supports(const Expr& call);
/// As Supports, for a whole straight-line function; the reason names the operator.
Verdict SupportsSequence(const OpSequence& sequence);

}  // namespace collage::native
