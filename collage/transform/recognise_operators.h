#pragma once

#include "collage/ir/module.h"

namespace collage {

/// Makes one operator of what exporters write out in several: nn.layer_norm along one axis (deviation over root, or with one factor for
/// data and mean, as Keras does), its scale and shift where they are constants, nn.softmax with and without the largest element taken
/// away, nn.log_softmax and sigmoid. Nothing where something in between is read elsewhere, since it would then be computed twice.
///
///     %0 = exp(%x);  divide(%0, sum(%0, axis=[1], keepdims=True))        before
///     nn.softmax(%x, axis=1)                                             after
///
/// Results differ by rounding, and where an exponential overflows: nn.softmax and nn.log_softmax are finite there. It stands behind the
/// common subexpressions, so that what is equal is one expression. GELU, swish, hard-swish and attention have no operator: backends take
/// whole what is written out.
Result<IRModule> RecogniseOperators(const IRModule& module);

}  // namespace collage
