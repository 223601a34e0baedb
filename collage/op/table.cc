#include "collage/op/table.h"

#include "collage/op/families.h"

namespace collage {
namespace {

OpTable BuildTable() {
  OpTable table;
  for (const auto add : {AddConvolutionOperators,
                         AddMatmulOperators,
                         AddPoolingOperators,
                         AddNormalisationOperators,
                         AddSoftmaxOperators,
                         AddElementwiseOperators,
                         AddCastOperators,
                         AddBroadcastOperators,
                         AddReduceOperators,
                         AddViewOperators,
                         AddDataMovementOperators,
                         AddGatherOperators,
                         AddScatterOperators,
                         AddSelectionOperators,
                         AddCumulativeOperators,
                         AddEinsumOperators,
                         AddRecurrentOperators,
                         AddQuantisationOperators,
                         AddVolumeOperators,
                         AddSamplingOperators,
                         AddLinearAlgebraOperators,
                         AddRoiPoolOperators,
                         AddLinearAttentionOperators,
                         AddNBitsProductOperators,
                         AddPairwiseCouplingOperators,
                         AddResizeOperators,
                         AddCol2ImOperators,
                         AddCreationOperators,
                         AddStringOperators,
                         AddDeviceOperators}) {
    add(table);
  }
  return table;
}

}  // namespace

const OpTable& Operators() {
  static const OpTable table = BuildTable();
  return table;
}

}  // namespace collage
