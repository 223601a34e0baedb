#include "collage/backend/native/codegen/operators.h"

namespace collage::native {

EmitOperator FindEmitOperator(const std::string& name) {
  static const EmitTable table = [] {
    EmitTable all;
    AddPointwise(all);
    AddMovement(all);
    AddReductions(all);
    AddNormalisation(all);
    AddPooling(all);
    AddCol2Im(all);
    AddConvolution(all);
    AddMatmul(all);
    return all;
  }();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace collage::native
