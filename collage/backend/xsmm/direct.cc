#include <algorithm>
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

std::vector<Stretch> StretchesAlong(const Convolution& convolution, size_t dimension) {
  const Window& window = convolution.window;
  std::vector<Stretch> stretches;
  for (int64_t position = 0; position < convolution.output[dimension]; ++position) {
    const int64_t begin = position * window.stride[dimension] - window.pad_begin[dimension];
    const auto meets = [&](int64_t tap) {
      const int64_t element = begin + tap * window.dilation[dimension];
      return element >= 0 && element < convolution.input[dimension];
    };
    int64_t first = 0;
    while (first < window.kernel[dimension] && !meets(first)) ++first;
    int64_t end = first;
    while (end < window.kernel[dimension] && meets(end)) ++end;
    if (stretches.empty() || stretches.back().first_tap != first || stretches.back().taps != end - first)
      stretches.push_back({position, 0, first, end - first});
    ++stretches.back().count;
  }
  return stretches;
}

/// Cuts a convolution, channels last, into tiles of pixels side by side or one below the other at which the same taps meet data. So nothing
/// is padded, and a tile is a sum of products over those taps. Taps side by side whose data follow one another are one product where rows
/// of that depth do not overlap, which the library declines.
class DirectTiling {
 public:
  explicit DirectTiling(const Convolution& convolution)
      : convolution_(convolution),
        pixel_(convolution.input_channels),
        row_(convolution.input[1] * pixel_),
        result_pixel_(convolution.output_channels),
        result_row_(convolution.output[1] * result_pixel_) {}

  Result<Tiling> Cut(size_t data, size_t weight, const InstructionSet& instructions, int64_t tile_rows) const {
    Tiling tiling;
    for (const Stretch& down : StretchesAlong(convolution_, 0)) {
      for (const Stretch& across : StretchesAlong(convolution_, 1)) {
        if (down.taps == 0 || across.taps == 0) return Fail("libxsmm: of a convolution some results come from padding alone");
        AddRows(down, across, tile_rows, tiling);
      }
    }
    const int64_t inputs = convolution_.input_channels;
    const int64_t outputs = convolution_.output_channels;
    const int64_t taps = convolution_.window.kernel[0] * convolution_.window.kernel[1];
    const int64_t pixels = convolution_.input[0] * convolution_.input[1];
    tiling.batches.clear();
    for (int64_t image = 0; image < convolution_.batch; ++image)
      tiling.batches.push_back({image * pixels * inputs, 0, image * convolution_.output[0] * result_row_});
    tiling.row_value = data;
    tiling.panel_value = weight;
    tiling.depth = inputs;
    tiling.packing = Packing{taps, taps * inputs, {0}, {}};
    for (int64_t tap = 0; tap < taps; ++tap) tiling.packing->term_offsets.push_back(tap);
    for (const auto& [first, count] : CutEvenly(outputs, instructions.panel_columns, instructions.lanes))
      tiling.panels.push_back({first * inputs * taps, first, count, first});
    tiling.order = BetterOrder(convolution_.batch * pixels * inputs, outputs * inputs * taps);
    return tiling;
  }

 private:
  // Along the longer side, where tiles are higher.
  void AddRows(const Stretch& down, const Stretch& across, int64_t tile_rows, Tiling& tiling) const {
    const auto [stride_down, stride_across] = convolution_.window.stride;
    const bool is_wide = across.count >= down.count;
    Tiling::Kind kind = KindOf(down, across, is_wide ? stride_across * pixel_ : stride_down * row_);
    kind.result_stride = is_wide ? result_pixel_ : result_row_;
    for (int64_t line = 0; line < (is_wide ? down.count : across.count); ++line) {
      const int64_t y = down.begin + (is_wide ? line : 0);
      const int64_t x = across.begin + (is_wide ? 0 : line);
      for (Tiling::Rows rows : CutRows(is_wide ? across.count : down.count, tile_rows, kind.row_stride, kind.result_stride)) {
        rows.offset += DataOf(0, y, down.first_tap) * row_ + DataOf(1, x, across.first_tap) * pixel_;
        rows.result += y * result_row_ + x * result_pixel_;
        rows.kind = tiling.kinds.size();
        tiling.rows.push_back(rows);
      }
    }
    tiling.kinds.push_back(std::move(kind));
  }

  [[nodiscard]] Tiling::Kind KindOf(const Stretch& down, const Stretch& across, int64_t row_stride) const {
    const auto [dilation_down, dilation_across] = convolution_.window.dilation;
    const int64_t joined = dilation_across == 1 && across.taps * pixel_ <= row_stride ? across.taps : 1;
    Tiling::Kind kind{joined * pixel_, row_stride, 0, {}, {}};
    for (int64_t y = 0; y < down.taps; ++y) {
      for (int64_t x = 0; x < across.taps; x += joined) {
        kind.row_terms.push_back(y * dilation_down * row_ + x * dilation_across * pixel_);
        kind.panel_terms.push_back(((down.first_tap + y) * convolution_.window.kernel[1] + across.first_tap + x) * pixel_);
      }
    }
    return kind;
  }

  /// Which position of the data a tap meets.
  [[nodiscard]] int64_t DataOf(size_t dimension, int64_t position, int64_t tap) const {
    const Window& window = convolution_.window;
    return position * window.stride[dimension] + tap * window.dilation[dimension] - window.pad_begin[dimension];
  }

  const Convolution convolution_;
  int64_t pixel_, row_;                // elements, of the data
  int64_t result_pixel_, result_row_;  // and of the result
};

}  // namespace

Result<std::vector<Form>> DirectForms(const Chain& chain, const Convolution& convolution, const InstructionSet& instructions) {
  const size_t data = chain.base->inputs[0];
  const size_t weight = chain.base->inputs[1];
  const DirectTiling tiling(convolution);
  // As for products.
  constexpr int64_t kTileRows = 24;
  COLLAGE_TRY_STATUS(tiling.Cut(data, weight, instructions, kTileRows));
  return std::vector<Form>{ProductForm("direct/acdb",
                                       LayoutOfImage("acdb", convolution.input_channels, convolution.input[0] * convolution.input[1]),
                                       LayoutOfImage("acdb", convolution.output_channels, convolution.output[0] * convolution.output[1]),
                                       kTileRows, [=](int64_t tile_rows) { return *tiling.Cut(data, weight, instructions, tile_rows); })};
}

}  // namespace collage::xsmm
