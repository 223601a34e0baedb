#pragma once

#include <dnnl.hpp>
#include <functional>
#include <string>
#include <vector>

#include "collage/backend/dnnl/plan.h"

namespace collage::dnnl_backend {

/// Calls `make`, and answers an empty descriptor where the library declines.
template <class Descriptor>
Descriptor OrEmpty(const std::function<Descriptor()>& make) {
  try {
    return make();
  } catch (const dnnl::error&) {
    return Descriptor();
  }
}

/// The implementation's name, "jit_1x1:avx512_core".
std::string ImplementationOf(const dnnl::primitive_desc_base& primitive);

/// A plan and what decides whether it is worth offering.
struct Found {
  Plan plan;
  std::string implementation;
  std::string layouts;  ///< "acdb", "plain-aBcd16b"
  size_t rank = 0;      ///< 0 for the library's first choice for these layouts
};

/// Drops what is broken, and what cannot win: the same implementation in the same layouts twice, code for an older instruction set than the
/// best that was found, the library's reference loops beside anything else, and alternatives beyond `most` for one layout.
std::vector<Plan> WorthOffering(std::vector<Found> found, size_t most);

}  // namespace collage::dnnl_backend
