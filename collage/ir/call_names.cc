#include "collage/ir/call_names.h"

#include <algorithm>

#include "collage/ir/print.h"
#include "collage/support/short_list.h"

namespace collage {

CallNames::CallNames(const Expr& function) : numbers_(PrintExpr(function).names) {}

std::string CallNames::Number(const Expr& call) const {
  const auto number = numbers_.find(call.get());
  return number == numbers_.end() ? "result" : number->second;
}

std::string CallNames::Describe(const Expr& call) const {
  const std::vector<std::string> nodes = call->origin().OnnxNodes();
  std::string text = nodes.empty() ? Number(call) : ShortList(nodes);
  if (const OpDef* op = CalledOp(call)) text += " (" + op->name + ")";
  return nodes.empty() && !call->origin().Empty() ? text + " at " + call->origin().ToString() : text;
}

bool CallNames::IsCalled(const Expr& call, const std::string& name) const {
  const OpDef* op = CalledOp(call);
  if ((op && op->name == name) || Number(call) == name) return true;
  const std::vector<const OriginPart*> parts = call->origin().Parts();
  return std::any_of(parts.begin(), parts.end(), [&](const OriginPart* part) { return part->text == name; });
}

}  // namespace collage
