#pragma once

// Geometry of the operators that slide a window over NCHW data, read once from types and attributes: kernels, code
// generators and graph writers use these values, so that the defaults and the forms of "padding" are known in one place.

#include <array>
#include <cstdint>
#include <vector>

#include "collage/ir/attributes.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor_type.h"

namespace collage {

/// Keeps every product of extents, strides and dilations inside 64 bits.
inline constexpr int64_t kMaximumExtent = int64_t{1} << 30;

/// An attribute of `count` integers between `minimum` and 2^30; one value is for all.
Result<std::vector<int64_t>> ReadMany(const Attributes& attributes, const char* name, size_t count, int64_t fallback, int64_t minimum);

/// A two-dimensional window; [0] is height, [1] is width.
struct Window {
  std::array<int64_t, 2> kernel{1, 1};
  std::array<int64_t, 2> stride{1, 1};
  std::array<int64_t, 2> dilation{1, 1};
  std::array<int64_t, 2> pad_begin{0, 0};
  std::array<int64_t, 2> pad_end{0, 0};

  /// Extent that the dilated kernel spans.
  [[nodiscard]] int64_t Span(size_t dimension) const { return (kernel[dimension] - 1) * dilation[dimension] + 1; }
};

/// nn.conv2d and nn.conv2d_transpose. For both, `window` relates the larger plane to the smaller one: a convolution reads the
/// data through it, a transposed one writes the output through it.
struct Convolution {
  int64_t batch;
  int64_t input_channels;
  int64_t output_channels;
  int64_t groups;
  std::array<int64_t, 2> input;   ///< height and width of the data
  std::array<int64_t, 2> output;  ///< height and width of the result
  Window window;
};

/// nn.max_pool2d and nn.avg_pool2d.
struct Pooling {
  int64_t batch;
  int64_t channels;
  std::array<int64_t, 2> input;
  std::array<int64_t, 2> output;
  Window window;
  bool ceil_mode;
  bool count_include_pad;  ///< of nn.avg_pool2d: padding counts in the divisor (what a ceil-mode window has beyond it does not)
};

/// What of a window and its larger plane is needed for the whole smaller plane, in all dimensions together; padding is not.
struct WindowUse {
  double pairs = 1;      ///< of a position of the smaller plane and a tap that meet an element of the larger one
  double elements = 1;   ///< of the larger plane that some tap meets
  double taps = 1;       ///< that meet some element
  double positions = 1;  ///< of the smaller plane at which some tap meets an element
};

/// One dimension of it: a tap at `tap * dilation` and a position at `position * stride` meet the element at their sum less `pad_begin`.
/// Takes time by the fewer of taps and positions, so that no extent is too large.
WindowUse UseAlong(int64_t taps, int64_t dilation, int64_t positions, int64_t stride, int64_t pad_begin, int64_t extent);

/// Windows and planes of any number of dimensions.
template <class AnyWindow, size_t dimensions>
WindowUse UseOf(const AnyWindow& window, const std::array<int64_t, dimensions>& larger, const std::array<int64_t, dimensions>& smaller) {
  WindowUse use;
  for (size_t d = 0; d < dimensions; ++d) {
    const WindowUse along = UseAlong(window.kernel[d], window.dilation[d], smaller[d], window.stride[d], window.pad_begin[d], larger[d]);
    use.pairs *= along.pairs;
    use.elements *= along.elements;
    use.taps *= along.taps;
    use.positions *= along.positions;
  }
  return use;
}

/// Each checks every constraint on shapes and geometry; after a call has been made they cannot fail on its arguments.
Result<Convolution> ReadConvolution(const TensorType& data, const TensorType& weight, const Attributes& attributes);
Result<Convolution> ReadTransposedConvolution(const TensorType& data, const TensorType& weight, const Attributes& attributes);
Result<Pooling> ReadPooling(const TensorType& data, const Attributes& attributes);

}  // namespace collage
