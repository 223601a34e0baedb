#include "collage/tensor/checked_bytes.h"

#include <algorithm>

namespace collage {
namespace {

/// False once the product exceeds what can be addressed.
bool MultiplyBy(uint64_t factor, uint64_t& product) {
  return !__builtin_mul_overflow(product, std::max<uint64_t>(factor, 1), &product) && product <= kAddressableBytes;
}

}  // namespace

std::optional<size_t> CheckedByteCount(const TensorType& type, const Layout& layout) {
  std::vector<uint64_t> block(type.shape.size(), 1);
  for (const Layout::Block& inner : layout.blocks()) {
    if (!MultiplyBy(static_cast<uint64_t>(inner.extent), block[inner.dimension])) return std::nullopt;
  }
  uint64_t product = ElementBytes(type, layout);
  for (size_t i = 0; i < type.shape.size(); ++i) {
    if (type.shape[i] < 0 || static_cast<uint64_t>(type.shape[i]) > kAddressableBytes) return std::nullopt;
    const uint64_t blocks = (static_cast<uint64_t>(type.shape[i]) + block[i] - 1) / block[i];
    if (!MultiplyBy(blocks, product) || !MultiplyBy(block[i], product)) return std::nullopt;
  }
  return PhysicalByteCount(type, layout);
}

}  // namespace collage
