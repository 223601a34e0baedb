#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "collage/ir/op_sequence.h"
#include "collage/op/matrix_product.h"
#include "collage/op/window.h"

namespace collage::clblast_layers {

/// result = factor * a x b, plus `added`, over batches of row-major matrices.
struct Product {
  size_t a, b;  ///< indices into the sequence's values, as all here
  MatrixProduct geometry;
  std::vector<int64_t> offsets_a, offsets_b;  ///< of each batch's matrix, elements
  float factor = 1;
  std::optional<size_t> added;  ///< a parameter of the result's type, into which the result is computed
  size_t result;
};

/// result = data convolved with weight.
struct ConvolutionLayer {
  size_t data, weight;
  Convolution geometry;
  size_t result;

  /// Whether the image is the matrix that is multiplied, as it is.
  [[nodiscard]] bool IsProduct() const;
  /// Of that matrix: all channels times the window's elements.
  [[nodiscard]] int64_t MatrixRows() const { return geometry.input_channels * geometry.window.kernel[0] * geometry.window.kernel[1]; }
  [[nodiscard]] int64_t MatrixColumns() const { return geometry.output[0] * geometry.output[1]; }
};

using Layer = std::variant<Product, ConvolutionLayer>;

/// What CLBlast computes of a function; errors say what it does not.
Result<Layer> RecogniseLayer(const OpSequence& sequence);

}  // namespace collage::clblast_layers
