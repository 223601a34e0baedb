#pragma once

#include "collage/ir/module.h"

namespace collage {

/// Transposes, and views that insert or drop dimensions of extent 1, cancel over what lies between them: operators element by element,
/// nn.bias_add, concatenate, and reductions that keep their dimensions. Exporters of models with channels last write a transpose on either
/// side of each convolution, and convolutions in one dimension are read as ones in two. Each largest region of such operators is computed
/// as if before the movement that most of its inputs come through, where less is moved then in all: movements at its border that cancel,
/// against those that have to be added. Of transposes bytes count, of views their number. A reduction that drops dimensions takes a
/// transpose in front of it into its axes where the others keep their order.
/// Errors: none of its own; types are inferred anew.
Result<IRModule> CancelMovement(const IRModule& module);

}  // namespace collage
