#include "collage/ir/module.h"

#include <algorithm>

#include "collage/support/check.h"

namespace collage {

IRModule IRModule::FromMain(Expr function) {
  IRModule module;
  module.Set("main", std::move(function));
  return module;
}

void IRModule::Set(const std::string& name, Expr function) {
  COLLAGE_CHECK(function && function->As<Function>());
  for (auto& [existing, value] : functions_) {
    if (existing == name) {
      value = std::move(function);
      return;
    }
  }
  functions_.emplace_back(name, std::move(function));
}

void IRModule::Remove(const std::string& name) {
  std::erase_if(functions_, [&](const auto& entry) { return entry.first == name; });
}

Expr IRModule::Find(const std::string& name) const {
  const auto at = std::find_if(functions_.begin(), functions_.end(), [&](const auto& entry) { return entry.first == name; });
  return at == functions_.end() ? nullptr : at->second;
}

const Expr& IRModule::MainExpr() const {
  const auto at = std::find_if(functions_.begin(), functions_.end(), [](const auto& entry) { return entry.first == "main"; });
  COLLAGE_CHECK(at != functions_.end(), "the module has no @main");
  return at->second;
}

const Function& IRModule::Main() const { return *MainExpr()->As<Function>(); }

}  // namespace collage
