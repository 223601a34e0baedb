#include "collage/ir/constant_memory.h"

#include <unordered_set>

#include "collage/ir/visit.h"
#include "collage/support/mappings.h"

namespace collage {

std::vector<Tensor> ConstantTensors(const Expr& expr) {
  std::vector<Tensor> tensors;
  std::unordered_set<const std::byte*> seen;
  PostOrder(expr, [&](const Expr& inner) {
    const Constant* constant = inner->As<Constant>();
    if (constant && seen.insert(constant->value.Bytes()).second) tensors.push_back(constant->value);
  });
  return tensors;
}

size_t ConstantBytes(const Expr& expr) {
  size_t bytes = 0;
  for (const Tensor& constant : ConstantTensors(expr)) bytes += constant.ByteCount();
  return bytes;
}

void GiveBackConstants(const Expr& expr) {
  for (const Tensor& constant : ConstantTensors(expr)) GiveBack(constant.Bytes(), constant.ByteCount());
}

}  // namespace collage
