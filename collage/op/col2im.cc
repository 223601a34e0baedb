#include "collage/op/col2im.h"

#include <numeric>
#include <string>

#include "collage/op/axis_view.h"
#include "collage/op/binary_kernel.h"
#include "collage/op/families.h"
#include "collage/op/index_walk.h"
#include "collage/op/rules.h"
#include "collage/op/window.h"

namespace collage {
namespace {

/// More than a tensor has elements where that many are too many.
int64_t CappedProduct(const std::vector<int64_t>& values) {
  constexpr int64_t kMost = int64_t{1} << 41;
  int64_t product = 1;
  for (const int64_t value : values) product = value > kMost / product ? kMost : product * value;
  return product;
}

/// The innermost loop over blocks: their elements of one tap, which lie side by side, go to one row of the image.
template <class T, class Sum>
void AddRow(const Col2Im& c, int64_t tap, const T* row, Sum* image_row) {
  const size_t last = c.image.size() - 1;
  int64_t place = tap * c.dilation[last] - c.pad_begin[last];
  for (int64_t block = 0; block < c.blocks[last]; ++block, place += c.stride[last]) {
    if (place >= 0 && place < c.image[last]) image_row[place] = AddFunction()(image_row[place], static_cast<Sum>(row[block]));
  }
}

/// All blocks of one channel. Floating point is summed in float64 and rounded once, integers wrap around.
template <class T, class Sum>
void AddPlane(const Col2Im& c, const T* data, std::vector<Sum>& image) {
  const size_t last = c.image.size() - 1;
  Shape rows = c.blocks;
  rows[last] = 1;
  for (IndexWalk tap(c.kernel); tap.Valid(); tap.Next()) {
    for (IndexWalk row(rows); row.Valid(); row.Next(), data += c.blocks[last]) {
      int64_t place = 0;
      bool is_inside = true;
      for (size_t d = 0; d < last; ++d) {
        const int64_t at = row[d] * c.stride[d] + tap[d] * c.dilation[d] - c.pad_begin[d];
        is_inside = is_inside && at >= 0 && at < c.image[d];
        place = place * c.image[d] + at;
      }
      if (is_inside) AddRow(c, tap[last], data, image.data() + place * c.image[last]);
    }
  }
}

void Col2ImKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  const Result<Col2Im> c = ReadCol2Im(inputs[0].type(), attributes);
  COLLAGE_CHECK(c.has_value());
  const int64_t plane = c->Taps() * ElementCount(c->blocks);
  VisitNumberType(inputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    using Sum = std::conditional_t<std::is_floating_point_v<T>, double, T>;
    T* target = outputs[0].MutableData<T>();
    for (int64_t i = 0; i < c->batch * c->channels; ++i) {
      std::vector<Sum> image(static_cast<size_t>(ElementCount(c->image)), Sum{});
      AddPlane(*c, inputs[0].Data<T>() + i * plane, image);
      for (const Sum sum : image) *target++ = static_cast<T>(sum);
    }
  });
}

Result<Type> Col2ImType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  COLLAGE_TRY_STATUS(ExpectNumber(data, "data"));
  const Col2Im c = COLLAGE_TRY(ReadCol2Im(data, attributes));
  TensorType result{{c.batch, c.channels}, data.dtype};
  result.shape.insert(result.shape.end(), c.image.begin(), c.image.end());
  return Type(std::move(result));
}

/// One addition for each element of a block that lies in the image.
Work Col2ImWork(TypeArguments arguments, const Type& result, const Attributes& attributes) {
  const Col2Im c = *ReadCol2Im(*arguments[0].AsTensor(), attributes);
  double additions = static_cast<double>(c.batch * c.channels);
  for (size_t d = 0; d < c.image.size(); ++d)
    additions *= UseAlong(c.kernel[d], c.dilation[d], c.blocks[d], c.stride[d], c.pad_begin[d], c.image[d]).pairs;
  return {additions, ByteCount(arguments[0]) + ByteCount(result)};
}

}  // namespace

Result<Col2Im> ReadCol2Im(const TensorType& data, const Attributes& attributes) {
  COLLAGE_TRY_STATUS(ExpectRank(data, "data", 3));
  const size_t dimensions = IntsAttribute(attributes, "output_size", {}).size();
  if (dimensions == 0) return Fail("attribute 'output_size' is empty, expected an extent for each spatial dimension");
  Col2Im c;
  c.image = COLLAGE_TRY(ReadMany(attributes, "output_size", dimensions, 0, 0));
  c.kernel = COLLAGE_TRY(ReadMany(attributes, "kernel_size", dimensions, 1, 1));
  c.stride = COLLAGE_TRY(ReadMany(attributes, "strides", dimensions, 1, 1));
  c.dilation = COLLAGE_TRY(ReadMany(attributes, "dilation", dimensions, 1, 1));
  std::vector<int64_t> padding = COLLAGE_TRY(ReadMany(attributes, "padding", 2 * dimensions, 0, 0));
  for (size_t d = 0; d < dimensions; ++d) {
    const int64_t padded = c.image[d] + padding[d] + padding[dimensions + d];
    const int64_t span = (c.kernel[d] - 1) * c.dilation[d] + 1;
    if (span > padded) {
      return Fail("a block spans " + std::to_string(span) + " along spatial dimension " + std::to_string(d) + ", expected at most the " +
                  std::to_string(padded) + " of the padded image");
    }
    c.blocks.push_back((padded - span) / c.stride[d] + 1);
  }
  padding.resize(dimensions);
  c.pad_begin = std::move(padding);
  const int64_t taps = CappedProduct(c.kernel);
  const int64_t blocks = CappedProduct(c.blocks);
  if (data.shape[1] % taps != 0 || data.shape[2] != blocks) {
    return Fail("data has shape " + ToString(data.shape) + ", expected (batch, channels * " + std::to_string(taps) + ", " +
                std::to_string(blocks) + ") for " + std::to_string(blocks) + " blocks of shape " + ToString(c.kernel));
  }
  c.batch = data.shape[0];
  c.channels = data.shape[1] / taps;
  return c;
}

TapsAlong::TapsAlong(const Col2Im& col2im, size_t dimension)
    : divisor(std::gcd(col2im.stride[dimension], col2im.dilation[dimension])),
      factor(0),
      step(col2im.stride[dimension] / divisor),
      most((col2im.kernel[dimension] + step - 1) / step) {
  // The inverse of dilation / divisor modulo step, which is there because they have no common factor.
  const int64_t dilation = col2im.dilation[dimension] / divisor % step;
  while (factor < step && factor * dilation % step != 1 % step) ++factor;
}

void AddCol2ImOperators(OpTable& table) {
  Register(table, {.name = "nn.col2im",
                   .summary = "Lays the blocks of (batch, channels * elements of a block, blocks) over an image, where they add up: the "
                              "opposite of cutting out what a convolution's window sees. Any number of spatial dimensions.",
                   .argument_names = {"data"},
                   .attributes = {{"output_size", "ints", "extents of the image", true},
                                  {"kernel_size", "ints", "extents of a block (1 value: all)", true},
                                  {"strides", "ints", "steps from block to block, default 1"},
                                  {"dilation", "ints", "distance of a block's elements in the image, default 1"},
                                  {"padding", "ints",
                                   "what the blocks reach beyond the image: before each dimension, then behind each (1 value: all), "
                                   "default 0; it is dropped"}},
                   .kind = OpKind::kOutElementwiseFusable,
                   .infer_type = Col2ImType,
                   .work = Col2ImWork,
                   .reference = Col2ImKernel});
}

}  // namespace collage
