#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collage/backend/xsmm/forms.h"
#include "collage/tensor/layout.h"

namespace collage::xsmm {

/// Where a tensor is read: a constant, or a port of the kernel.
struct Source {
  const float* constant = nullptr;
  size_t port = 0;

  [[nodiscard]] const float* In(std::span<const void* const> inputs) const {
    return constant ? constant : static_cast<const float*>(inputs[port]);
  }
};

/// Finds the operands of a chain, and keeps its constants in the layouts in which they are read.
class Operands {
 public:
  Source Of(const Chain& chain, size_t value, const Layout& layout);
  /// Memory for a constant that is packed.
  float* Allocate(int64_t elements);

 private:
  std::vector<std::shared_ptr<std::byte>> storage_;
};

}  // namespace collage::xsmm
