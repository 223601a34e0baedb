#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "collage/op/axis_view.h"
#include "collage/op/families.h"
#include "collage/op/index_walk.h"
#include "collage/op/reference_team.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

Status ExpectOneOf(const Attributes& attributes, const char* name, const char* fallback, std::initializer_list<const char*> values) {
  const std::string value = StringAttribute(attributes, name, fallback);
  std::string list;
  for (const char* item : values) {
    if (value == item) return {};
    list += (list.empty() ? "\"" : ", \"") + std::string(item) + "\"";
  }
  return Fail("attribute '" + std::string(name) + "' is \"" + value + "\", expected one of " + list);
}

Result<Type> GridSampleType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const TensorType grid = COLLAGE_TRY(TensorArgument(arguments, 1, "grid"));
  COLLAGE_TRY_STATUS(ExpectFloat(data, "data"));
  COLLAGE_TRY_STATUS(ExpectFloat(grid, "grid"));
  COLLAGE_TRY_STATUS(ExpectOneOf(attributes, "method", "bilinear", {"nearest", "bilinear", "bicubic"}));
  COLLAGE_TRY_STATUS(ExpectOneOf(attributes, "padding_mode", "zeros", {"zeros", "border", "reflection"}));
  COLLAGE_TRY_STATUS(ExpectRankAtLeast(data, "data", 3));
  const size_t rank = data.shape.size();
  COLLAGE_TRY_STATUS(ExpectRank(grid, "grid", rank));
  if (grid.shape[0] != data.shape[0] || grid.shape.back() != static_cast<int64_t>(rank) - 2) {
    return Fail("grid has shape " + ToString(grid.shape) + ", expected the batch of data, of shape " + ToString(data.shape) +
                ", first and " + std::to_string(rank - 2) + " coordinates last");
  }
  const bool empty = ElementCount(Shape(data.shape.begin() + 2, data.shape.end())) == 0;
  if (empty && grid.ElementCount() > 0) return Fail("data has shape " + ToString(data.shape) + ", expected elements to sample");
  Shape result{data.shape[0], data.shape[1]};
  result.insert(result.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
  return Type(TensorType{std::move(result), data.dtype});
}

/// A place that is mirrored at both borders until it lies between them.
double Reflect(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  const double distance = std::fmod(std::abs(x - low), 2 * range);
  return low + (distance <= range ? distance : 2 * range - distance);
}

/// One dimension of a sampling: which elements count, and how much.
class Sampler {
 public:
  explicit Sampler(const Attributes& attributes)
      : method_(StringAttribute(attributes, "method", "bilinear")),
        padding_(StringAttribute(attributes, "padding_mode", "zeros")),
        corners_(BoolAttribute(attributes, "align_corners", false)) {}

  struct Tap {
    int64_t place;  ///< negative: outside, 0 counts
    double weight;
  };

  /// Taps for a coordinate in [-1, 1] along a dimension.
  [[nodiscard]] std::vector<Tap> Taps(double coordinate, int64_t extent) const {
    const auto length = static_cast<double>(extent);
    double x = corners_ ? (coordinate + 1) / 2 * (length - 1) : ((coordinate + 1) * length - 1) / 2;
    if (method_ == "nearest") x = std::nearbyint(x);
    const double low = corners_ ? 0 : -0.5;
    const double high = corners_ ? length - 1 : length - 0.5;
    // At the border it is each tap that the end stands in for, as in PyTorch, and not the place between them.
    if (padding_ == "reflection" && (x < low || x > high)) x = Reflect(x, low, high);
    if (!std::isfinite(x)) return {};
    if (method_ == "nearest") return {{Padded(static_cast<int64_t>(std::trunc(x)), extent), 1.0}};
    return method_ == "bilinear" ? Around(x, extent, 0, 1) : Around(x, extent, -1, 2);
  }

 private:
  [[nodiscard]] std::vector<Tap> Around(double x, int64_t extent, int64_t first, int64_t last) const {
    std::vector<Tap> taps;
    // Far outside nothing counts, or the end: clamping keeps the place inside of int64_t.
    const auto floor = static_cast<int64_t>(std::clamp(std::floor(x), -1e15, 1e15));
    for (int64_t i = first; i <= last; ++i) {
      taps.push_back({Padded(floor + i, extent), Influence(x - std::floor(x) - static_cast<double>(i))});
    }
    return taps;
  }

  /// A triangle, or the cubic convolution of Keys (1981) with a = -0.75.
  [[nodiscard]] double Influence(double distance) const {
    const double t = std::abs(distance);
    if (method_ == "bilinear") return std::max(1 - t, 0.0);
    constexpr double a = -0.75;
    if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((t - 5) * t + 8) * t * a - 4 * a : 0;
  }

  [[nodiscard]] int64_t Padded(int64_t place, int64_t extent) const {
    if (place >= 0 && place < extent) return place;
    if (padding_ == "zeros") return -1;
    if (padding_ == "border") return std::clamp<int64_t>(place, 0, extent - 1);
    const double low = corners_ ? 0 : -0.5;
    const double mirrored = Reflect(static_cast<double>(place), low, static_cast<double>(extent) - 1 - low);
    return std::clamp<int64_t>(static_cast<int64_t>(mirrored), 0, extent - 1);
  }

  std::string method_;
  std::string padding_;
  bool corners_;
};

/// Sum over the product of the taps of all dimensions.
template <class T>
double Interpolate(const T* data, const Shape& extents, const std::vector<std::vector<Sampler::Tap>>& taps) {
  Shape counts;
  for (const auto& along : taps) counts.push_back(static_cast<int64_t>(along.size()));
  double sum = 0;
  for (IndexWalk walk(counts); walk.Valid(); walk.Next()) {
    double weight = 1;
    int64_t place = 0;
    for (size_t d = 0; d < taps.size(); ++d) {
      const Sampler::Tap& tap = taps[d][static_cast<size_t>(walk[d])];
      if (tap.place < 0) {
        weight = 0;
        break;
      }
      weight *= tap.weight;
      place = place * extents[d] + tap.place;
    }
    if (weight != 0) sum += weight * static_cast<double>(data[place]);
  }
  return sum;
}

void GridSampleKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  if (outputs[0].ElementCount() == 0) return;
  const Shape& shape = inputs[0].shape();
  const Shape extents(shape.begin() + 2, shape.end());
  const int64_t plane = ElementCount(extents);
  const std::vector<double> grid = inputs[1].ToDouble();
  const Sampler sampler(attributes);
  const size_t dimensions = extents.size();
  const int64_t points = static_cast<int64_t>(grid.size() / dimensions) / shape[0];
  VisitFloatType(inputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    const T* data = inputs[0].Data<T>();
    T* result = outputs[0].MutableData<T>();
    for (int64_t i = 0; i < shape[0] * points; ++i) {
      std::vector<std::vector<Sampler::Tap>> taps;
      // Coordinates are x, y, .. while dimensions are .., height, width.
      for (size_t d = 0; d < dimensions; ++d)
        taps.push_back(sampler.Taps(grid[static_cast<size_t>(i + 1) * dimensions - 1 - d], extents[d]));
      for (int64_t c = 0; c < shape[1]; ++c) {
        const int64_t channel = i / points * shape[1] + c;
        result[channel * points + i % points] = static_cast<T>(Interpolate(data + channel * plane, extents, taps));
      }
    }
  });
}

Result<Type> RoiAlignType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const TensorType rois = COLLAGE_TRY(TensorArgument(arguments, 1, "rois"));
  const TensorType batch = COLLAGE_TRY(TensorArgument(arguments, 2, "batch_indices"));
  COLLAGE_TRY_STATUS(ExpectFloat(data, "data"));
  COLLAGE_TRY_STATUS(ExpectSameDType(rois, "rois", data, "data"));
  COLLAGE_TRY_STATUS(ExpectInteger(batch, "batch_indices"));
  COLLAGE_TRY_STATUS(ExpectRank(data, "data", 4));
  COLLAGE_TRY_STATUS(ExpectRank(rois, "rois", 2));
  COLLAGE_TRY_STATUS(ExpectShape(rois, "rois", {rois.shape[0], 4}));
  COLLAGE_TRY_STATUS(ExpectShape(batch, "batch_indices", {rois.shape[0]}));
  COLLAGE_TRY_STATUS(ExpectOneOf(attributes, "mode", "avg", {"avg", "max"}));
  const std::vector<int64_t> size = IntsAttribute(attributes, "pooled_size", {1, 1});
  if (size.size() != 2 || size[0] < 1 || size[1] < 1) return Fail("attribute 'pooled_size' must be a height and a width of at least 1");
  if (data.ElementCount() == 0 && rois.shape[0] > 0)
    return Fail("data has shape " + ToString(data.shape) + ", expected elements to sample");
  return Type(TensorType{{rois.shape[0], data.shape[1], size[0], size[1]}, data.dtype});
}

/// Four elements around a place of a plane, with their bilinear weights; weights of 0 outside.
struct Corners {
  std::array<int64_t, 4> place{};
  std::array<double, 4> weight{};
};

Corners CornersAt(double y, double x, int64_t height, int64_t width) {
  Corners corners;
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return corners;
  y = std::clamp(y, 0.0, static_cast<double>(height - 1));
  x = std::clamp(x, 0.0, static_cast<double>(width - 1));
  const auto top = static_cast<int64_t>(y);
  const auto left = static_cast<int64_t>(x);
  const int64_t bottom = std::min(top + 1, height - 1);
  const int64_t right = std::min(left + 1, width - 1);
  const double down = y - static_cast<double>(top);
  const double across = x - static_cast<double>(left);
  corners.place = {top * width + left, top * width + right, bottom * width + left, bottom * width + right};
  corners.weight = {(1 - down) * (1 - across), (1 - down) * across, down * (1 - across), down * across};
  return corners;
}

/// A region on the feature map, cut into bins.
struct Region {
  double top;
  double left;
  double bin_height;
  double bin_width;
  double rows;  ///< of samples in a bin
  double columns;
};

Region RegionOf(const double* roi, const Attributes& attributes, const Shape& result) {
  const double scale = DoubleAttribute(attributes, "spatial_scale", 1);
  const bool aligned = BoolAttribute(attributes, "aligned", false);
  const double offset = aligned ? 0.5 : 0;
  double width = (roi[2] - roi[0]) * scale;
  double height = (roi[3] - roi[1]) * scale;
  if (!aligned) {
    width = std::max(width, 1.0);
    height = std::max(height, 1.0);
  }
  Region region{roi[1] * scale - offset,
                roi[0] * scale - offset,
                height / static_cast<double>(result[2]),
                width / static_cast<double>(result[3]),
                0,
                0};
  const int64_t ratio = IntAttribute(attributes, "sample_ratio", 0);
  const auto samples = [&](double bin) { return ratio > 0 ? static_cast<double>(ratio) : std::max(std::ceil(bin), 0.0); };
  region.rows = samples(region.bin_height);
  region.columns = samples(region.bin_width);
  return region;
}

/// Of samples that a bin has along one dimension, those that are on the map or next to it: all others are zero, and a malformed region may
/// have billions of them.
struct Inside {
  int64_t first = 0;
  int64_t count = 0;
};

Inside InsideOf(double start, double extent, double samples, int64_t size) {
  constexpr double kMost = 0x1p31;  // beyond, the map is less of a bin than float32 can tell; nor is NaN up to it
  const double step = extent / samples;
  if (!(samples > 0 && samples <= kMost && std::abs(start) <= kMost && !std::isnan(step))) return {};
  // A region that is aligned may have no extent, all samples in one place, and its corners may be the wrong way round.
  if (step == 0) return {0, static_cast<int64_t>(samples)};
  const auto [low, high] = std::minmax({(-1 - start) / step, (static_cast<double>(size) - start) / step});
  const double first = std::clamp(std::floor(low - 0.5), 0.0, samples);
  const double last = std::clamp(std::ceil(high + 0.5), first, samples);
  return {static_cast<int64_t>(first), static_cast<int64_t>(last - first)};
}

/// Appends the samples of one bin that are not zero for certain.
void AddSamples(const Region& region, int64_t row, int64_t column, int64_t height, int64_t width, std::vector<Corners>& samples) {
  const double top = region.top + static_cast<double>(row) * region.bin_height;
  const double left = region.left + static_cast<double>(column) * region.bin_width;
  const Inside rows = InsideOf(top, region.bin_height, region.rows, height);
  const Inside columns = InsideOf(left, region.bin_width, region.columns, width);
  for (int64_t y = rows.first; y < rows.first + rows.count; ++y) {
    for (int64_t x = columns.first; x < columns.first + columns.count; ++x) {
      const double down = (static_cast<double>(y) + 0.5) / region.rows * region.bin_height;
      const double across = (static_cast<double>(x) + 0.5) / region.columns * region.bin_width;
      samples.push_back(CornersAt(top + down, left + across, height, width));
    }
  }
}

/// `count` is of all samples, those that are zero included.
template <class T>
double Pool(std::span<const Corners> samples, double count, const T* plane, bool average) {
  double sum = 0;
  double largest = static_cast<double>(samples.size()) < count ? 0 : -std::numeric_limits<double>::infinity();
  for (const Corners& corners : samples) {
    for (size_t k = 0; k < 4; ++k) {
      const double value = corners.weight[k] * static_cast<double>(plane[corners.place[k]]);
      sum += value;
      largest = std::max(largest, value);
    }
  }
  if (samples.empty()) return 0;
  return average ? sum / count : largest;
}

constexpr size_t kSamplesAtOnce = 4096;  // 256 KB: they stay in the cache for all channels

/// One channel after the other: its plane is read from the cache, and where the samples lie is the same for all.
void RoiAlignKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape();
  const Shape& result = outputs[0].shape();
  const std::vector<double> rois = inputs[1].ToDouble();
  const std::vector<int64_t> batch = inputs[2].ToInt64();
  const bool average = StringAttribute(attributes, "mode", "avg") == "avg";
  const int64_t bins = result[2] * result[3];
  VisitFloatType(inputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    const T* data = inputs[0].Data<T>();
    T* output = outputs[0].MutableData<T>();
    ShareAmongTeam(result[0], [&](int64_t begin, int64_t end) {
      std::vector<Corners> samples;
      std::vector<size_t> ends;  // of each bin's samples
      for (int64_t r = begin; r < end; ++r) {
        const Region region = RegionOf(rois.data() + 4 * r, attributes, result);
        const int64_t n = std::clamp<int64_t>(batch[static_cast<size_t>(r)], 0, shape[0] - 1);
        const double of_bin = region.rows * region.columns;
        for (int64_t first = 0; first < bins; first += static_cast<int64_t>(ends.size())) {
          samples.clear();
          ends.clear();
          for (int64_t bin = first; bin < bins && samples.size() < kSamplesAtOnce; ++bin) {
            AddSamples(region, bin / result[3], bin % result[3], shape[2], shape[3], samples);
            ends.push_back(samples.size());
          }
          for (int64_t c = 0; c < shape[1]; ++c) {
            const T* plane = data + (n * shape[1] + c) * shape[2] * shape[3];
            T* of_channel = output + (r * shape[1] + c) * bins + first;
            for (size_t i = 0; i < ends.size(); ++i) {
              const size_t before = i == 0 ? 0 : ends[i - 1];
              of_channel[i] = static_cast<T>(Pool(std::span(samples).subspan(before, ends[i] - before), of_bin, plane, average));
            }
          }
        }
      }
    });
  });
}

}  // namespace

void AddSamplingOperators(OpTable& table) {
  Register(table,
           {.name = "image.grid_sample",
            .summary = "Data [batch, channels, spatial..] read at the places that grid [batch, .., coordinates] gives, x first, from -1 "
                       "to 1 over each dimension.",
            .argument_names = {"data", "grid"},
            .attributes = {{"method", "string", "\"nearest\", \"bilinear\" or \"bicubic\", default \"bilinear\""},
                           {"padding_mode", "string", "beyond the data: \"zeros\", \"border\" or \"reflection\", default \"zeros\""},
                           {"align_corners", "bool", "-1 and 1 are the centres of the end elements, not their edges, default False"}},
            .kind = OpKind::kOutElementwiseFusable,
            .infer_type = GridSampleType,
            .work = WorkPerOutput(8),
            .reference = GridSampleKernel});
  Register(table, {.name = "vision.roi_align",
                   .summary = "Mean or maximum of bilinear samples in each bin of regions [left, top, right, bottom] of NCHW data.",
                   .argument_names = {"data", "rois", "batch_indices"},
                   .attributes = {{"pooled_size", "ints", "height and width of the result", true},
                                  {"spatial_scale", "float", "from coordinates of regions to those of data, default 1"},
                                  {"sample_ratio", "int", "samples of a bin along each dimension, 0 for as many as elements, default 0"},
                                  {"mode", "string", "\"avg\" or \"max\", default \"avg\""},
                                  {"aligned", "bool", "regions are shifted by half an element, default False"}},
                   .kind = OpKind::kOpaque,
                   .infer_type = RoiAlignType,
                   .work = WorkPerOutput(16),
                   .reference = RoiAlignKernel});
}

}  // namespace collage
