#pragma once

// Reference kernels that have files of their own. Each has the signature of OpDef::ReferenceKernel; types have been checked.

#include <cstddef>

namespace collage {

inline constexpr std::nullptr_t BroadcastToKernel = nullptr;
inline constexpr std::nullptr_t ReferenceArgMax = nullptr;
inline constexpr std::nullptr_t ReferenceArgMin = nullptr;
inline constexpr std::nullptr_t ReferenceAveragePool2d = nullptr;
inline constexpr std::nullptr_t ReferenceBatchMatmul = nullptr;
inline constexpr std::nullptr_t ReferenceBatchNorm = nullptr;
inline constexpr std::nullptr_t ReferenceConcatenate = nullptr;
inline constexpr std::nullptr_t ReferenceConv2d = nullptr;
inline constexpr std::nullptr_t ReferenceConv2dTranspose = nullptr;
inline constexpr std::nullptr_t ReferenceDense = nullptr;
inline constexpr std::nullptr_t ReferenceDepthToSpace = nullptr;
inline constexpr std::nullptr_t ReferenceGatherNd = nullptr;
inline constexpr std::nullptr_t ReferenceGlobalAveragePool2d = nullptr;
inline constexpr std::nullptr_t ReferenceGlobalMaxPool2d = nullptr;
inline constexpr std::nullptr_t ReferenceGroupNorm = nullptr;
inline constexpr std::nullptr_t ReferenceInstanceNorm = nullptr;
inline constexpr std::nullptr_t ReferenceLayerNorm = nullptr;
inline constexpr std::nullptr_t ReferenceLogSoftmax = nullptr;
inline constexpr std::nullptr_t ReferenceLrn = nullptr;
inline constexpr std::nullptr_t ReferenceMatmul = nullptr;
inline constexpr std::nullptr_t ReferenceMax = nullptr;
inline constexpr std::nullptr_t ReferenceMaxPool2d = nullptr;
inline constexpr std::nullptr_t ReferenceMean = nullptr;
inline constexpr std::nullptr_t ReferenceMin = nullptr;
inline constexpr std::nullptr_t ReferencePad = nullptr;
inline constexpr std::nullptr_t ReferenceProduct = nullptr;
inline constexpr std::nullptr_t ReferenceSoftmax = nullptr;
inline constexpr std::nullptr_t ReferenceSpaceToDepth = nullptr;
inline constexpr std::nullptr_t ReferenceSplit = nullptr;
inline constexpr std::nullptr_t ReferenceStack = nullptr;
inline constexpr std::nullptr_t ReferenceStridedSlice = nullptr;
inline constexpr std::nullptr_t ReferenceSum = nullptr;
inline constexpr std::nullptr_t ReferenceTake = nullptr;
inline constexpr std::nullptr_t ReferenceTile = nullptr;
inline constexpr std::nullptr_t ReferenceTranspose = nullptr;
inline constexpr std::nullptr_t ReferenceUpsampling = nullptr;
inline constexpr std::nullptr_t WhereKernel = nullptr;

}  // namespace collage
