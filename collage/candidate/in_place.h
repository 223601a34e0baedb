#pragma once

#include "collage/candidate/rule.h"
#include "collage/tensor/layout.h"

namespace collage {

/// What needs no kernel where memory is planned for it (kInPlace): each concatenate whose parts are computed by somebody, so that they may
/// be computed right where the result lies, and each split or strided_slice along one axis. Not for strings, which kernels are given as
/// texts.
SpecPointer InPlaceSpec();
/// Whether a candidate is one of that spec.
bool IsInPlace(const CandidatePartition& candidate);
/// Whether the parts of such a call lie one after another in a layout, each from a multiple of kBufferAlignment on, as kernels want it.
bool LiesTogether(const Expr& call, const Layout& layout);

}  // namespace collage
