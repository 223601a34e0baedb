#include <algorithm>
#include <type_traits>

#include "collage/op/kernels.h"
#include "collage/op/product_kernel.h"
#include "collage/op/window.h"
#include "collage/support/check.h"

namespace collage {
namespace {

// One tap of the window over one channel: where it reads data for output position o, if it hits an element at all.
// A convolution reads at o * stride + offset. A transposed one reads at (o + offset) / stride where that is whole.
struct Reader {
  std::array<int64_t, 2> input;
  std::array<int64_t, 2> output;
  std::array<int64_t, 2> stride;
  bool transposed;

  [[nodiscard]] int64_t Position(size_t d, int64_t o, int64_t offset) const {
    int64_t position = o * stride[d] + offset;
    if (transposed) {
      position = o + offset;
      if (position < 0 || position % stride[d] != 0) return -1;
      position /= stride[d];
    }
    return position < input[d] ? position : -1;
  }

  /// Writes the elements under the tap for output positions first .. first + count of the plane; zero in the padding.
  template <class T>
  void Read(const T* plane, std::array<int64_t, 2> offset, int64_t first, int64_t count, double* out) const {
    int64_t y = first / output[1];
    int64_t x = first % output[1];
    while (count > 0) {
      const int64_t run = std::min(count, output[1] - x);
      const int64_t row = Position(0, y, offset[0]);
      if (row < 0) {
        std::fill(out, out + run, 0.0);
      } else {
        ReadRow(plane + row * input[1], offset[1], x, run, out);
      }
      out += run;
      count -= run;
      x = 0;
      ++y;
    }
  }

  template <class T>
  void ReadRow(const T* row, int64_t offset, int64_t first, int64_t count, double* out) const {
    if (!transposed && stride[1] == 1) {
      // Without a test an element, so that the compiler can vectorise the usual case.
      const int64_t begin = std::clamp<int64_t>(-offset - first, 0, count);
      const int64_t end = std::clamp<int64_t>(input[1] - offset - first, begin, count);
      std::fill(out, out + begin, 0.0);
      for (int64_t i = begin; i < end; ++i) out[i] = static_cast<double>(row[first + i + offset]);
      std::fill(out + end, out + count, 0.0);
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t column = Position(1, first + i, offset);
      out[i] = column < 0 ? 0.0 : static_cast<double>(row[column]);
    }
  }
};

template <class T>
void Convolve(const Convolution& c, bool transposed, const T* data, const T* weight, T* result) {
  const int64_t window = c.window.kernel[0] * c.window.kernel[1];
  const int64_t group_inputs = c.input_channels / c.groups;
  const int64_t group_outputs = c.output_channels / c.groups;
  const int64_t input_plane = c.input[0] * c.input[1];
  const int64_t output_plane = c.output[0] * c.output[1];
  const Reader reader{c.input, c.output, c.window.stride, transposed};
  // The planes of all images side by side: of a small plane alone a team would share next to nothing.
  const auto for_each_plane = [&](int64_t first, int64_t count, const auto& use) {
    for (int64_t run = 0; count > 0; first += run, count -= run) {
      run = std::min(count, output_plane - first % output_plane);
      use(first / output_plane, first % output_plane, run);
    }
  };
  for (int64_t group = 0; group < c.groups; ++group) {
    BlockedProduct product{group_outputs, c.batch * output_plane, group_inputs * window, {}, {}, {}};
    product.left = [&](int64_t channel, int64_t first, int64_t count, double* out) {
      for (int64_t k = first; k < first + count; ++k) {
        const int64_t place = transposed ? ((group * group_inputs + k / window) * group_outputs + channel) * window + k % window
                                         : (group * group_outputs + channel) * group_inputs * window + k;
        *out++ = static_cast<double>(weight[place]);
      }
    };
    product.right = [&](int64_t k, int64_t first, int64_t count, double* out) {
      const std::array<int64_t, 2> tap = {k % window / c.window.kernel[1], k % c.window.kernel[1]};
      std::array<int64_t, 2> offset{};
      for (size_t d = 0; d < 2; ++d) {
        offset[d] = tap[d] * c.window.dilation[d] - c.window.pad_begin[d];
        if (transposed) offset[d] = -offset[d];
      }
      for_each_plane(first, count, [&](int64_t n, int64_t from, int64_t run) {
        reader.Read(data + (n * c.input_channels + group * group_inputs + k / window) * input_plane, offset, from, run, out);
        out += run;
      });
    };
    product.store = [&](int64_t channel, int64_t first, int64_t count, const double* values) {
      for_each_plane(first, count, [&](int64_t n, int64_t from, int64_t run) {
        T* target = result + (n * c.output_channels + group * group_outputs + channel) * output_plane + from;
        for (int64_t i = 0; i < run; ++i) target[i] = Rounded<T>(*values++);
      });
    };
    Compute(product);
  }
}

void ConvolveTensors(const Result<Convolution>& convolution, bool transposed, Inputs inputs, Outputs outputs) {
  COLLAGE_CHECK(convolution.has_value());
  if (inputs[0].dtype() == DType::kInt32) {
    Convolve(*convolution, transposed, inputs[0].Data<int32_t>(), inputs[1].Data<int32_t>(), outputs[0].MutableData<int32_t>());
  } else if (inputs[0].dtype() == DType::kFloat32) {
    Convolve(*convolution, transposed, inputs[0].Data<float>(), inputs[1].Data<float>(), outputs[0].MutableData<float>());
  } else {
    Convolve(*convolution, transposed, inputs[0].Data<double>(), inputs[1].Data<double>(), outputs[0].MutableData<double>());
  }
}

}  // namespace

void ReferenceConv2d(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  ConvolveTensors(ReadConvolution(inputs[0].type(), inputs[1].type(), attributes), false, inputs, outputs);
}

void ReferenceConv2dTranspose(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  ConvolveTensors(ReadTransposedConvolution(inputs[0].type(), inputs[1].type(), attributes), true, inputs, outputs);
}

}  // namespace collage
