#pragma once

#include "collage/candidate/gather.h"

namespace collage_python {

/// A rule tree; which compiler it is for, a target says when it is used.
struct RuleTree {
  collage::StatedRule make;
};

}  // namespace collage_python
