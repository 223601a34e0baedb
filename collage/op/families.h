#pragma once

#include "collage/ir/op_def.h"

namespace collage {

// One a file of this folder; table.cc calls them in this order, which is the order of docs/ops.md.

void AddConvolutionOperators(OpTable& table);
void AddMatmulOperators(OpTable& table);
void AddPoolingOperators(OpTable& table);
void AddNormalisationOperators(OpTable& table);
void AddSoftmaxOperators(OpTable& table);
void AddElementwiseOperators(OpTable& table);
void AddCastOperators(OpTable& table);
void AddBroadcastOperators(OpTable& table);
void AddReduceOperators(OpTable& table);
void AddViewOperators(OpTable& table);
void AddDataMovementOperators(OpTable& table);
void AddGatherOperators(OpTable& table);
void AddScatterOperators(OpTable& table);
void AddSelectionOperators(OpTable& table);
void AddCumulativeOperators(OpTable& table);
void AddEinsumOperators(OpTable& table);
void AddRecurrentOperators(OpTable& table);
void AddQuantisationOperators(OpTable& table);
void AddVolumeOperators(OpTable& table);
void AddSamplingOperators(OpTable& table);
void AddLinearAlgebraOperators(OpTable& table);
void AddRoiPoolOperators(OpTable& table);
void AddLinearAttentionOperators(OpTable& table);
void AddNBitsProductOperators(OpTable& table);
void AddPairwiseCouplingOperators(OpTable& table);
void AddResizeOperators(OpTable& table);
void AddCol2ImOperators(OpTable& table);
void AddCreationOperators(OpTable& table);
void AddStringOperators(OpTable& table);
void AddDeviceOperators(OpTable& table);

}  // namespace collage
