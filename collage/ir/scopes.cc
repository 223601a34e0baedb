#include "collage/ir/scopes.h"

#include <utility>

namespace collage {

void Scopes::Push(bool function) {
  frames_.push_back({{}, function, frames_.empty() ? 0 : frames_.back().block});
  if (function) ++function_depth_;
}

size_t Scopes::PushBlock() {
  frames_.push_back({{}, false, ++blocks_});
  return blocks_;
}

void Scopes::Pop() {
  if (frames_.back().function) --function_depth_;
  frames_.pop_back();
}

void Scopes::Bind(const std::string& name, const Expr& expr) {
  frames_.back().locals[name] = expr;
  bindings_.push_back({name, expr, frames_.back().block});
  const auto [at, inserted] = names_.try_emplace(name, Named{expr, function_depth_});
  if (!inserted && function_depth_ <= at->second.depth) at->second = {expr, function_depth_};
}

Expr Scopes::Find(const std::string& name) const {
  for (size_t i = frames_.size(); i-- > 0;) {
    const auto at = frames_[i].locals.find(name);
    if (at != frames_[i].locals.end()) return at->second;
  }
  return nullptr;
}

NameTable Scopes::TakeNames() {
  NameTable table;
  for (auto& [name, named] : names_) table.emplace(name, std::move(named.expr));
  names_.clear();
  return table;
}

BindingList Scopes::TakeBindings() { return std::exchange(bindings_, {}); }

}  // namespace collage
