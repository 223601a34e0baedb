#pragma once

// Reference kernels that have files of their own (<family>_kernel.cc). Each has the signature of OpDef::ReferenceKernel; types
// have been checked.

#include <span>

#include "collage/ir/attributes.h"
#include "collage/tensor/tensor.h"

namespace collage {

using Inputs = std::span<const Tensor>;
using Outputs = std::span<Tensor>;

void ReferenceConv2d(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceConv2dTranspose(Inputs inputs, const Attributes& attributes, Outputs outputs);

void ReferenceDense(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceMatmul(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceBatchMatmul(Inputs inputs, const Attributes& attributes, Outputs outputs);

void ReferenceMaxPool2d(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceAveragePool2d(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceGlobalMaxPool2d(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceGlobalAveragePool2d(Inputs inputs, const Attributes& attributes, Outputs outputs);

void ReferenceBatchNorm(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceLayerNorm(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceInstanceNorm(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceGroupNorm(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceLrn(Inputs inputs, const Attributes& attributes, Outputs outputs);

void ReferenceSoftmax(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceLogSoftmax(Inputs inputs, const Attributes& attributes, Outputs outputs);

void ReferenceSum(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceMean(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceProduct(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceMax(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceMin(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceArgMax(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceArgMin(Inputs inputs, const Attributes& attributes, Outputs outputs);

void ReferenceTranspose(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceConcatenate(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceStack(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceSplit(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceStridedSlice(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferencePad(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceTile(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceBroadcastTo(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceWhere(Inputs inputs, const Attributes& attributes, Outputs outputs);

void ReferenceTake(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceGatherNd(Inputs inputs, const Attributes& attributes, Outputs outputs);

void ReferenceUpsampling(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceDepthToSpace(Inputs inputs, const Attributes& attributes, Outputs outputs);
void ReferenceSpaceToDepth(Inputs inputs, const Attributes& attributes, Outputs outputs);

}  // namespace collage
