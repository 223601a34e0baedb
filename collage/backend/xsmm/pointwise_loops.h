#pragma once

// Products of pixels and weights whose bias and bounds are done in registers: for shallow ones, where a pass over the stored tile would
// take as long as a good part of the product. Compiled once for each instruction set.

#include <cstdint>

namespace collage::xsmm {

/// result[pixels][columns] = data[pixels][depth] x weights[depth][columns], each plus a bias and within bounds. Numbers are elements.
struct PixelProduct {
  const float* data;
  int64_t data_pixel;  ///< from pixel to pixel
  int64_t pixels, depth;
  const float* weights;  ///< rows of columns follow one another
  int64_t columns;       ///< whole vectors
  const float* bias;     ///< for each column; null for none
  float low, high;
  float* result;
  int64_t result_pixel;
};

using PixelProductLoop = void (*)(const PixelProduct&);

/// For vectors of so many elements: 16 with AVX-512, 8 with AVX2.
PixelProductLoop PixelProductLoopFor(int64_t lanes);

}  // namespace collage::xsmm
