#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "collage/runtime/strided_copy.h"
#include "collage/tensor/layout.h"
#include "collage/tensor/tensor_type.h"

namespace collage {

/// Brings a tensor from one physical layout into another, rounding where that stores elements with fewer bits: planned once, run often.
/// Padding of the target is written as zero, padding of the source is not read. Every pair of layouts works; those whose blocks divide each
/// other (all that libraries use) run as few large row copies and blocked transpositions, others as many small ones.
class LayoutConversion {
 public:
  /// Both layouts must fit the type. `threads` is the most that Run uses.
  LayoutConversion(const TensorType& type, const Layout& from, const Layout& to, int threads);

  /// Reads PhysicalByteCount(type, from) bytes and writes PhysicalByteCount(type, to) bytes; the two must not overlap. Any
  /// alignment that suits the element type. Allocates nothing; several threads may run one conversion at the same time.
  void Run(const void* source, void* target) const;
  /// True when both layouts put every element at the same place and have no padding: no conversion is needed at all.
  [[nodiscard]] bool IsIdentity() const { return copies_.size() == 1 && copies_[0].IsContiguous(); }

 private:
  std::vector<StridedCopy> copies_;
  int threads_ = 1;
};

/// Changes with the code that conversions run: part of what a measured price of one is kept under.
std::string_view LayoutConversionVersion();

}  // namespace collage
