#pragma once

#include "collage/pattern/rule.h"

namespace collage::xsmm {

/// How chains of convolutions grow: of two or three, each by 1x1 or depthwise, with what follows each element by element. What takes
/// nothing else from outside than constants always belongs to its convolution. What lies between must not be the smallest tensor: where
/// it is, little is saved by not storing it.
FusionRule FusedConvolutionsRule();

}  // namespace collage::xsmm
