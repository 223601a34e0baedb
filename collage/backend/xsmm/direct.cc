#include <array>
#include <utility>

#include "collage/backend/xsmm/forms.h"

namespace collage::xsmm {
namespace {

/// Positions of the result, along one dimension, at which the same taps meet data.
struct Stretch {
  int64_t begin, count;
  int64_t first_tap, taps;
  friend bool operator==(const Stretch&, const Stretch&) = default;
};

std::vector<Stretch> StretchesAlong(const VolumeConvolution& convolution, size_t dimension) {
  std::vector<Stretch> stretches;
  for (int64_t position = 0; position < convolution.output[dimension]; ++position) {
    const auto [first, taps] = TapsAt(convolution, dimension, position);
    if (stretches.empty() || stretches.back().first_tap != first || stretches.back().taps != taps)
      stretches.push_back({position, 0, first, taps});
    ++stretches.back().count;
  }
  return stretches;
}

/// Cuts a convolution, channels last, into tiles of pixels side by side or one below the other at which the same taps meet data. So nothing
/// is padded, and a tile is a sum of products over those taps. Taps side by side whose data follow one another are one product where rows
/// of that depth do not overlap, which the library declines.
class DirectTiling {
 public:
  explicit DirectTiling(const VolumeConvolution& convolution) : convolution_(convolution) {
    strides_ = Strides(convolution.input, convolution.input_channels);
    result_strides_ = Strides(convolution.output, convolution.output_channels);
  }

  Result<Tiling> Cut(size_t data, size_t weight, const InstructionSet& instructions, int64_t tile_rows) const {
    Tiling tiling;
    for (const Stretch& deep : StretchesAlong(convolution_, 0)) {
      for (const Stretch& down : StretchesAlong(convolution_, 1)) {
        for (const Stretch& across : StretchesAlong(convolution_, 2)) {
          if (deep.taps == 0 || down.taps == 0 || across.taps == 0)
            return Fail("libxsmm: of a convolution some results come from padding alone");
          AddRows({deep, down, across}, tile_rows, tiling);
        }
      }
    }
    const int64_t groups = convolution_.groups;
    const int64_t inputs = convolution_.input_channels / groups;
    const int64_t outputs = convolution_.output_channels / groups;
    const int64_t taps = convolution_.window.Taps();
    const int64_t image = convolution_.input[0] * strides_[0];
    const int64_t matrix = outputs * inputs * taps;
    tiling.batches.clear();
    tiling.packing = Packing{taps, taps * inputs, {}, {}};
    for (int64_t group = 0; group < groups; ++group) tiling.packing->matrices.push_back(group * matrix);
    for (int64_t n = 0; n < convolution_.batch; ++n) {
      for (int64_t group = 0; group < groups; ++group) {
        const int64_t channel = group * outputs;
        tiling.batches.push_back(
            {n * image + group * inputs, group * matrix, n * convolution_.output[0] * result_strides_[0] + channel, channel});
      }
    }
    tiling.row_value = data;
    tiling.panel_value = weight;
    tiling.depth = inputs;
    for (int64_t tap = 0; tap < taps; ++tap) tiling.packing->term_offsets.push_back(tap);
    for (const auto& [first, count] : CutEvenly(outputs, instructions.panel_columns, instructions.lanes))
      tiling.panels.push_back({first * inputs * taps, first, count, first});
    tiling.order = BetterOrder(convolution_.batch * image, groups * matrix);
    return tiling;
  }

 private:
  using Stretches = std::array<Stretch, 3>;

  /// Elements from plane to plane, from row to row and from pixel to pixel.
  static Triple Strides(const Triple& extents, int64_t channels) {
    return {extents[1] * extents[2] * channels, extents[2] * channels, channels};
  }

  // Along the longer side of a plane, where tiles are higher.
  void AddRows(const Stretches& stretches, int64_t tile_rows, Tiling& tiling) const {
    const size_t along = stretches[2].count >= stretches[1].count ? 2 : 1;
    const size_t other = 3 - along;
    const int64_t stride = convolution_.window.stride[along] * strides_[along];
    Tiling::Kind kind = KindOf(stretches, stride);
    kind.result_stride = result_strides_[along];
    for (int64_t line = 0; line < stretches[0].count * stretches[other].count; ++line) {
      Triple position = {stretches[0].begin + line / stretches[other].count, stretches[1].begin, stretches[2].begin};
      position[other] += line % stretches[other].count;
      for (Tiling::Rows rows : CutRows(stretches[along].count, tile_rows, stride, kind.result_stride)) {
        for (size_t d = 0; d < 3; ++d) {
          rows.offset += DataOf(d, position[d], stretches[d].first_tap) * strides_[d];
          rows.result += position[d] * result_strides_[d];
        }
        rows.kind = tiling.kinds.size();
        tiling.rows.push_back(rows);
      }
    }
    tiling.kinds.push_back(std::move(kind));
  }

  [[nodiscard]] Tiling::Kind KindOf(const Stretches& stretches, int64_t row_stride) const {
    const VolumeWindow& window = convolution_.window;
    const auto& [deep, down, across] = stretches;
    const int64_t inputs = convolution_.input_channels / convolution_.groups;
    const bool is_joined = window.dilation[2] == 1 && convolution_.groups == 1 && across.taps * inputs <= row_stride;
    const int64_t joined = is_joined ? across.taps : 1;
    Tiling::Kind kind{joined * inputs, row_stride, 0, {}, {}};
    for (int64_t z = 0; z < deep.taps; ++z) {
      for (int64_t y = 0; y < down.taps; ++y) {
        for (int64_t x = 0; x < across.taps; x += joined) {
          kind.row_terms.push_back(z * window.dilation[0] * strides_[0] + y * window.dilation[1] * strides_[1] +
                                   x * window.dilation[2] * strides_[2]);
          const int64_t tap = ((deep.first_tap + z) * window.kernel[1] + down.first_tap + y) * window.kernel[2] + across.first_tap + x;
          kind.panel_terms.push_back(tap * inputs);
        }
      }
    }
    return kind;
  }

  /// Which position of the data a tap meets.
  [[nodiscard]] int64_t DataOf(size_t dimension, int64_t position, int64_t tap) const {
    const VolumeWindow& window = convolution_.window;
    return position * window.stride[dimension] + tap * window.dilation[dimension] - window.pad_begin[dimension];
  }

  VolumeConvolution convolution_;
  Triple strides_{};  // of the data
  Triple result_strides_{};
};

}  // namespace

Result<std::vector<Form>> DirectForms(const Chain& chain, const SpatialConvolution& convolution, const InstructionSet& instructions) {
  const size_t data = chain.base->inputs[0];
  const size_t weight = chain.base->inputs[1];
  const DirectTiling tiling(convolution);
  COLLAGE_TRY_STATUS(tiling.Cut(data, weight, instructions, kTileRows));
  const auto pixels = [](const Triple& extents) { return extents[0] * extents[1] * extents[2]; };
  const std::string tag = convolution.LastTag();
  return std::vector<Form>{ProductForm("direct/" + tag, LayoutOfImage(tag, convolution.input_channels, pixels(convolution.input)),
                                       LayoutOfImage(tag, convolution.output_channels, pixels(convolution.output)), kTileRows,
                                       [=](int64_t tile_rows) { return *tiling.Cut(data, weight, instructions, tile_rows); })};
}

}  // namespace collage::xsmm
