#include "collage/ir/failure.h"

#include <memory>

namespace collage {

Result<Expr> CallFailure(const std::string& name, const Type& result) {
  FunctionType type;
  type.result = std::make_shared<const Type>(result);
  return MakeCall(MakeGlobalVar(name, type), {});
}

Result<Expr> MakeFailure(const std::string& name, const Type& result, const std::string& text) {
  return MakeFunction({}, COLLAGE_TRY(CallFailure(name, result)), {{kFailureAttribute, text}});
}

}  // namespace collage
