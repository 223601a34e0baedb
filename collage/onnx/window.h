#pragma once

#include "collage/onnx/node_reader.h"

namespace collage::onnx_io {

/// The sliding window of a convolution or pooling, per spatial dimension; padding is all beginnings, then all ends.
struct Window {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> padding;

  /// A one-dimensional window as a two-dimensional one of height 1.
  Status InsertHeight();
  /// An error unless the window is two-dimensional, which is what most of our operators take.
  [[nodiscard]] Status RequireTwoDimensions() const;
};

/// Reads strides, dilations, pads and auto_pad of a node whose data have shape `data` (N, C, spatial...).
Result<Window> ReadWindow(const NodeReader& node, const Shape& data, const std::vector<int64_t>& kernel);

/// kernel_shape, strides, dilations and pads from the attributes of one of our two-dimensional operators.
Result<OnnxAttributes> WindowAttributes(const Attributes& attributes, const std::vector<int64_t>& kernel);

/// Our padding attribute, which may have one value (all sides), two (vertical, horizontal) or four.
Result<std::vector<int64_t>> CompletePadding(const Attributes& attributes);

/// A list of so many, or of three, from an attribute that may have one value for all.
Result<std::vector<int64_t>> Many(const Attributes& attributes, const std::string& name, size_t count, int64_t fallback);
Result<std::vector<int64_t>> Triple(const Attributes& attributes, const std::string& name, int64_t fallback);

/// A list of two from an attribute that may have one value for both.
Result<std::vector<int64_t>> Pair(const Attributes& attributes, const std::string& name, int64_t fallback);

}  // namespace collage::onnx_io
