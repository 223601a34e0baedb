#include "collage/ir/original_model.h"

namespace collage {

const Call* CallOfOriginal(const Function& function) {
  const Call* call = function.body->As<Call>();
  const Function* literal = call ? call->callee->As<Function>() : nullptr;
  return literal && literal->attributes.Has(kOnnxModelAttribute) ? call : nullptr;
}

}  // namespace collage
