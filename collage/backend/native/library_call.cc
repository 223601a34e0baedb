#include "collage/backend/native/library_call.h"

#include <algorithm>
#include <unordered_map>

#include "collage/backend/registry.h"
#include "collage/ir/visit.h"

namespace collage::native {
namespace {

// The library that a composite's label names: "dnnl" of "dnnl.dense"; empty for labels that name none.
std::string LibraryOf(const Expr& expr) {
  const Call* call = expr->As<Call>();
  const Function* callee = call ? call->callee->As<Function>() : nullptr;
  const AttributeValue* label = callee ? callee->attributes.Find("Composite") : nullptr;
  if (!label || !label->AsString()) return {};
  const std::string library = label->AsString()->substr(0, label->AsString()->find('.'));
  if (library == "native") return {};
  const std::vector<BackendRecord> records = AvailableBackends(Device{});
  const bool is_known = std::any_of(records.begin(), records.end(), [&](const BackendRecord& record) { return record.name == library; });
  return is_known ? library : std::string();
}

std::vector<Expr> LibraryCalls(const Function& function) {
  std::vector<Expr> calls;
  PostOrder(function.body, [&](const Expr& expr) {
    if (!LibraryOf(expr).empty()) calls.push_back(expr);
  });
  return calls;
}

// The composite with the constants that it is given inside.
Status TakeLibraryFunction(const Function& whole, const Call& call, LibraryCall& cut) {
  const Function& callee = *call.callee->As<Function>();
  std::unordered_map<const ExprNode*, Expr> constants;
  std::vector<Expr> parameters;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Expr& argument = call.args[i];
    const auto at = std::find(whole.parameters.begin(), whole.parameters.end(), argument);
    if (at != whole.parameters.end()) {
      cut.inputs.push_back(static_cast<size_t>(at - whole.parameters.begin()));
      parameters.push_back(callee.parameters[i]);
    } else if (argument->As<Constant>()) {
      constants.emplace(callee.parameters[i].get(), argument);
    } else {
      return Fail("what the library is given is computed inside the kernel");
    }
  }
  const Expr body = COLLAGE_TRY(Substitute(callee.body, constants));
  cut.function = COLLAGE_TRY(MakeFunction(std::move(parameters), body));
  return {};
}

Status TakeRest(const Function& whole, const Expr& call, LibraryCall& cut) {
  const Expr given = MakeVar("given", call->type());
  const Expr body = COLLAGE_TRY(Substitute(whole.body, {{call.get(), given}}));
  std::vector<Expr> parameters = {given};
  const std::unordered_map<const ExprNode*, size_t> uses = CountUses(body);
  for (size_t i = 0; i < whole.parameters.size(); ++i) {
    if (!uses.contains(whole.parameters[i].get())) continue;
    cut.rest_inputs.push_back(i);
    parameters.push_back(whole.parameters[i]);
  }
  cut.rest = COLLAGE_TRY(MakeFunction(std::move(parameters), body));
  return {};
}

}  // namespace

bool CallsLibrary(const Function& function) { return !LibraryCalls(function).empty(); }

Result<LibraryCall> CutAtLibraryCall(const Function& function) {
  const std::vector<Expr> calls = LibraryCalls(function);
  if (calls.size() != 1) return Fail("it calls libraries in " + std::to_string(calls.size()) + " places, expected one");
  const auto is_tensor = [](const Expr& expr) { return expr->type().AsTensor() != nullptr; };
  if (!std::all_of(function.parameters.begin(), function.parameters.end(), is_tensor) || !is_tensor(calls[0]))
    return Fail("a library is called with tuples");
  LibraryCall cut;
  cut.library = LibraryOf(calls[0]);
  COLLAGE_TRY_STATUS(TakeLibraryFunction(function, *calls[0]->As<Call>(), cut));
  COLLAGE_TRY_STATUS(TakeRest(function, calls[0], cut));
  return cut;
}

}  // namespace collage::native
