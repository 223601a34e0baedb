#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "collage/tensor/layout.h"
#include "collage/tensor/tensor_type.h"

namespace collage {

/// Matrices that lie one after another in row-major order, each to be stored with its columns as rows.
struct Transposition {
  int64_t batches;
  int64_t rows;     ///< of the source
  int64_t columns;  ///< of the source
  size_t element_bytes;
};

/// Bringing a tensor from one layout into another as a transposition, as between NCHW and NHWC; nothing where it is none, or where nothing
/// has to be moved.
std::optional<Transposition> AsTransposition(const TensorType& type, const Layout& from, const Layout& to);

}  // namespace collage
