#include <algorithm>
#include <cmath>

#include "collage/op/axis_view.h"
#include "collage/op/families.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

Result<Type> RoiPoolType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const TensorType rois = COLLAGE_TRY(TensorArgument(arguments, 1, "rois"));
  COLLAGE_TRY_STATUS(ExpectFloat(data, "data"));
  COLLAGE_TRY_STATUS(ExpectRank(data, "data", 4));
  COLLAGE_TRY_STATUS(ExpectRank(rois, "rois", 2));
  COLLAGE_TRY_STATUS(ExpectSameDType(rois, "rois", data, "data"));
  COLLAGE_TRY_STATUS(ExpectShape(rois, "rois", {rois.shape[0], 5}));
  const std::vector<int64_t> size = IntsAttribute(attributes, "pooled_size", {});
  if (size.size() != 2 || size[0] < 1 || size[1] < 1) return Fail("attribute 'pooled_size' must be a height and a width of at least 1");
  if (rois.shape[0] > 0 && data.shape[0] < 1) return Fail("data has shape " + ToString(data.shape) + ", expected an image for the regions");
  return Type(TensorType{{rois.shape[0], data.shape[1], size[0], size[1]}, data.dtype});
}

/// First element and the one behind the last of a bin, clipped to the plane.
struct Bin {
  int64_t begin;
  int64_t end;
};

/// Both ends of a region belong to it. NaN and what lies far outside give empty bins.
Bin BinOf(double first, double last, double scale, int64_t bin, int64_t bins, int64_t extent) {
  const double start = std::round(first * scale);
  const double length = std::max(std::round(last * scale) - start + 1, 1.0) / static_cast<double>(bins);
  const auto place = [&](double x) {
    return std::isfinite(x) ? static_cast<int64_t>(std::clamp(x, 0.0, static_cast<double>(extent))) : int64_t{0};
  };
  return {place(start + std::floor(static_cast<double>(bin) * length)), place(start + std::ceil(static_cast<double>(bin + 1) * length))};
}

template <class T>
T LargestIn(const T* plane, int64_t width, const Bin& rows, const Bin& columns) {
  if (rows.begin >= rows.end || columns.begin >= columns.end) return T{};
  T largest = plane[rows.begin * width + columns.begin];
  for (int64_t y = rows.begin; y < rows.end; ++y) {
    for (int64_t x = columns.begin; x < columns.end; ++x) largest = std::max(largest, plane[y * width + x]);
  }
  return largest;
}

void RoiPoolKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape();
  const Shape& result = outputs[0].shape();
  const double scale = DoubleAttribute(attributes, "spatial_scale", 1);
  const std::vector<double> rois = inputs[1].ToDouble();
  VisitFloatType(inputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    T* target = outputs[0].MutableData<T>();
    for (int64_t r = 0; r < result[0]; ++r) {
      const double* roi = rois.data() + 5 * r;
      const double image = std::isfinite(roi[0]) ? std::clamp(roi[0], 0.0, static_cast<double>(shape[0] - 1)) : 0;
      for (int64_t c = 0; c < shape[1]; ++c) {
        const T* plane = inputs[0].Data<T>() + (static_cast<int64_t>(image) * shape[1] + c) * shape[2] * shape[3];
        for (int64_t y = 0; y < result[2]; ++y) {
          const Bin rows = BinOf(roi[2], roi[4], scale, y, result[2], shape[2]);
          for (int64_t x = 0; x < result[3]; ++x) {
            *target++ = LargestIn(plane, shape[3], rows, BinOf(roi[1], roi[3], scale, x, result[3], shape[3]));
          }
        }
      }
    }
  });
}

}  // namespace

void AddRoiPoolOperators(OpTable& table) {
  Register(table,
           {.name = "vision.roi_pool",
            .summary = "Largest element in each bin of regions [image, left, top, right, bottom] of NCHW data, whose scaled ends are "
                       "rounded and belong to them; 0 of an empty bin.",
            .argument_names = {"data", "rois"},
            .attributes = {{"pooled_size", "ints", "height and width of the result", true},
                           {"spatial_scale", "float", "from coordinates of regions to those of data, default 1"}},
            .kind = OpKind::kOpaque,
            .infer_type = RoiPoolType,
            .work = WorkPerOutput(4),
            .reference = RoiPoolKernel});
}

}  // namespace collage
