#include "collage/ir/structural.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_set>

#include "collage/ir/visit.h"
#include "collage/support/hash.h"
#include "collage/tensor/strings.h"

namespace collage {
namespace {

// Counted by content at every use, not by identity.
bool IsRepeatable(const Expr& expr) { return expr->As<Constant>() || expr->As<Op>() || expr->As<GlobalVar>(); }

// A program as a numbered list: everything but what is repeatable, children before parents.
struct Numbered {
  std::vector<const Expr*> order;
  std::unordered_map<const ExprNode*, size_t> numbers;
  std::unordered_set<const ExprNode*> bound;

  explicit Numbered(const Expr& root) {
    PostOrder(root, [&](const Expr& expr) {
      if (IsRepeatable(expr) && &expr != &root) return;
      numbers.emplace(expr.get(), order.size());
      order.push_back(&expr);
      if (const Let* let = expr->As<Let>()) bound.insert(let->variable.get());
      if (const Function* function = expr->As<Function>()) {
        for (const Expr& parameter : function->parameters) bound.insert(parameter.get());
      }
    });
  }
};

uint64_t HashOfType(const Type& type) { return HashBytes(ToString(type)); }

// From this size on the bytes are hashed at the speed of memory. Smaller constants are few bytes, and their hashes key stored prices.
constexpr size_t kLargeBytes = 4096;

uint64_t HashOfValue(const Tensor& tensor) {
  if (tensor.dtype() == DType::kString) {  // their numbers differ from process to process
    uint64_t hash = tensor.ByteCount();
    for (const std::string& text : StringsOf(tensor)) hash = HashCombine(hash, HashBytes(text));
    return hash;
  }
  if (tensor.ByteCount() >= kLargeBytes) return XXH3_64bits_withSeed(tensor.Bytes(), tensor.ByteCount(), tensor.ByteCount());
  uint64_t hash = tensor.ByteCount();
  const std::byte* bytes = tensor.Bytes();
  for (size_t at = 0; at < tensor.ByteCount(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + at, std::min(sizeof word, tensor.ByteCount() - at));
    hash = HashCombine(hash, word);
  }
  return hash;
}

bool CountsByValue(const Tensor& tensor, const StructuralOptions& options) {
  return options.constants_by_value || tensor.ElementCount() == 1;
}

Attributes Counted(const Attributes& attributes, const StructuralOptions& options) {
  Attributes counted = attributes;
  for (const std::string& name : options.ignored_function_attributes) counted.Erase(name);
  return counted;
}

class Hasher {
 public:
  Hasher(const Expr& root, const StructuralOptions& options) : program_(root), options_(options) {}

  uint64_t Hash() {
    uint64_t hash = program_.order.size();
    for (const Expr* expr : program_.order) hash = HashCombine(hash, HashOf(*expr));
    return hash;
  }

 private:
  uint64_t HashOf(const Expr& expr) {
    if (IsRepeatable(expr)) return HashOfRepeatable(expr);
    uint64_t hash = HashCombine(expr->value().index(), HashOfContent(expr));
    ForEachChild(*expr, [&](const Expr& child) {
      hash = HashCombine(hash, IsRepeatable(child) ? HashOfRepeatable(child) : program_.numbers.at(child.get()));
    });
    return hash;
  }

  uint64_t HashOfContent(const Expr& expr) const {
    if (const Var* variable = expr->As<Var>()) {
      const uint64_t type = HashOfType(expr->type());
      return variable->virtual_device.empty() ? type : HashCombine(type, HashBytes(variable->virtual_device));
    }
    if (const Call* call = expr->As<Call>()) return call->attributes.Hash();
    if (const TupleGetItem* item = expr->As<TupleGetItem>()) return item->index;
    if (const Tuple* tuple = expr->As<Tuple>()) return tuple->fields.size();
    if (const Function* function = expr->As<Function>()) {
      return HashCombine(HashOfType(function->result_type), Counted(function->attributes, options_).Hash());
    }
    return 0;
  }

  uint64_t HashOfRepeatable(const Expr& expr) {
    const auto [at, inserted] = repeatable_.emplace(expr.get(), 0);
    if (!inserted) return at->second;
    uint64_t hash = HashCombine(expr->value().index(), HashOfType(expr->type()));
    if (const Op* op = expr->As<Op>()) hash = HashCombine(hash, HashBytes(op->def->name));
    if (const GlobalVar* global = expr->As<GlobalVar>()) hash = HashCombine(hash, HashBytes(global->name));
    const Constant* constant = expr->As<Constant>();
    if (constant && CountsByValue(constant->value, options_)) hash = HashCombine(hash, HashOfValue(constant->value));
    return at->second = hash;
  }

  Numbered program_;
  const StructuralOptions& options_;
  std::unordered_map<const ExprNode*, uint64_t> repeatable_;
};

class Comparison {
 public:
  Comparison(const Expr& a, const Expr& b, const StructuralOptions& options) : a_(a), b_(b), options_(options) {}

  bool Equal() const {
    if (a_.order.size() != b_.order.size()) return false;
    for (size_t i = 0; i < a_.order.size(); ++i) {
      if (!Equal(*a_.order[i], *b_.order[i])) return false;
    }
    return true;
  }

 private:
  bool Equal(const Expr& a, const Expr& b) const {
    if (a->value().index() != b->value().index() || !EqualContent(a, b)) return false;
    std::vector<const Expr*> children;
    ForEachChild(*a, [&](const Expr& child) { children.push_back(&child); });
    size_t at = 0;
    bool equal = true;
    ForEachChild(*b, [&](const Expr& child) {
      equal = equal && at < children.size() && EqualChild(*children[at], child);
      ++at;
    });
    return equal && at == children.size();
  }

  bool EqualChild(const Expr& a, const Expr& b) const {
    if (IsRepeatable(a) || IsRepeatable(b)) return a->value().index() == b->value().index() && EqualContent(a, b);
    return a_.numbers.at(a.get()) == b_.numbers.at(b.get());
  }

  bool EqualContent(const Expr& a, const Expr& b) const {
    if (a == b && IsRepeatable(a)) return true;
    if (a->As<Var>()) return EqualVariables(a, b);
    if (const Constant* x = a->As<Constant>()) return EqualConstants(x->value, b->As<Constant>()->value);
    if (const Op* op = a->As<Op>()) return op->def->name == b->As<Op>()->def->name;
    if (const GlobalVar* global = a->As<GlobalVar>()) return global->name == b->As<GlobalVar>()->name && a->type() == b->type();
    if (const Call* call = a->As<Call>()) return call->attributes == b->As<Call>()->attributes;
    if (const TupleGetItem* item = a->As<TupleGetItem>()) return item->index == b->As<TupleGetItem>()->index;
    if (const Function* x = a->As<Function>()) return EqualFunctions(*x, *b->As<Function>());
    return true;
  }

  bool EqualVariables(const Expr& a, const Expr& b) const {
    const bool bound = a_.bound.contains(a.get());
    if (bound != b_.bound.contains(b.get())) return false;
    return bound ? a->type() == b->type() && a->As<Var>()->virtual_device == b->As<Var>()->virtual_device : a == b;
  }

  bool EqualConstants(const Tensor& a, const Tensor& b) const {
    if (!(a.type() == b.type())) return false;
    return !CountsByValue(a, options_) || a.Bytes() == b.Bytes() || BitwiseEqual(a, b);
  }

  bool EqualFunctions(const Function& a, const Function& b) const {
    return a.parameters.size() == b.parameters.size() && a.result_type == b.result_type &&
           Counted(a.attributes, options_) == Counted(b.attributes, options_);
  }

  Numbered a_;
  Numbered b_;
  const StructuralOptions& options_;
};

}  // namespace

uint64_t ContentHash(const Expr& expr) { return StructuralHash(expr, {true, {"global_symbol"}}); }
uint64_t ContentHash(const IRModule& module) { return StructuralHash(module, {true, {"global_symbol"}}); }

StructuralOptions ForPricing() { return {false, {"global_symbol"}}; }

bool StructuralEqual(const Expr& a, const Expr& b, const StructuralOptions& options) { return Comparison(a, b, options).Equal(); }

bool StructuralEqual(const IRModule& a, const IRModule& b, const StructuralOptions& options) {
  return a.functions().size() == b.functions().size() && std::all_of(a.functions().begin(), a.functions().end(), [&](const auto& entry) {
           const Expr other = b.Find(entry.first);
           return other && StructuralEqual(entry.second, other, options);
         });
}

uint64_t StructuralHash(const Expr& expr, const StructuralOptions& options) { return Hasher(expr, options).Hash(); }

uint64_t StructuralHash(const IRModule& module, const StructuralOptions& options) {
  std::map<std::string, uint64_t> hashes;
  for (const auto& [name, function] : module.functions()) hashes[name] = StructuralHash(function, options);
  uint64_t hash = hashes.size();
  for (const auto& [name, value] : hashes) hash = HashCombine(HashCombine(hash, HashBytes(name)), value);
  return hash;
}

}  // namespace collage
