#include "collage/ir/failure.h"

#include <memory>

namespace collage {

std::string FailureOf(const Function& function) {
  const AttributeValue* failure = function.attributes.Find(kFailureAttribute);
  const std::string* text = failure ? failure->AsString() : nullptr;
  return text ? *text : std::string();
}

Result<Expr> CallFailure(const std::string& name, const Type& result) {
  FunctionType type;
  type.result = std::make_shared<const Type>(result);
  return MakeCall(MakeGlobalVar(name, type), {});
}

Result<Expr> MakeFailure(const std::string& name, const Type& result, const std::string& text) {
  return MakeFunction({}, COLLAGE_TRY(CallFailure(name, result)), {{kFailureAttribute, text}});
}

}  // namespace collage
