#pragma once

// Geometry of the operators that slide a window over NCDHW data (three spatial dimensions), read once from types and attributes.

#include <array>
#include <cstdint>
#include <span>

#include "collage/ir/attributes.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

using Triple = std::array<int64_t, 3>;

/// Depth, height, width.
struct VolumeWindow {
  Triple kernel{1, 1, 1};
  Triple stride{1, 1, 1};
  Triple dilation{1, 1, 1};
  Triple pad_begin{0, 0, 0};
  Triple pad_end{0, 0, 0};

  [[nodiscard]] int64_t Span(size_t dimension) const { return (kernel[dimension] - 1) * dilation[dimension] + 1; }
  [[nodiscard]] int64_t Taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

/// nn.conv3d and nn.conv3d_transpose: for both, the window relates the larger volume to the smaller one.
struct VolumeConvolution {
  int64_t batch;
  int64_t input_channels;
  int64_t output_channels;
  int64_t groups;
  Triple input;
  Triple output;
  VolumeWindow window;
};

/// nn.max_pool3d and nn.avg_pool3d.
struct VolumePooling {
  int64_t batch;
  int64_t channels;
  Triple input;
  Triple output;
  VolumeWindow window;
  bool count_include_pad;
};

/// Each checks every constraint on shapes and geometry; after a call has been made they cannot fail on its arguments.
Result<VolumeConvolution> ReadVolumeConvolution(const TensorType& data, const TensorType& weight, const Attributes& attributes,
                                                bool transposed);
Result<VolumePooling> ReadVolumePooling(const TensorType& data, const Attributes& attributes);

// Reference kernels, see OpDef::ReferenceKernel.
void ReferenceConv3d(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs);
void ReferenceConv3dTranspose(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs);
void ReferenceMaxPool3d(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs);
void ReferenceAveragePool3d(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs);

}  // namespace collage
