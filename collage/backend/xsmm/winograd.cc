#include "collage/backend/xsmm/winograd.h"

#include <algorithm>
#include <string>
#include <utility>

#include "collage/op/window.h"

namespace collage::xsmm {
namespace {

// Without it, planes of a power of two of bytes would share the same sets of a cache, and each transform touches all planes.
constexpr int64_t kPlaneGap = 16;

// Pixels side by side whose results are stored, with their tail, together: they stay in the first-level cache.
constexpr int64_t kStoredPixels = 32;

int64_t Ceiling(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The results of a dilated convolution lie in so many images that have nothing to do with each other: every n-th pixel is of the same.
int64_t TilesAlong(const SpatialConvolution& convolution, size_t dimension, const WinogradSize& size) {
  return Ceiling(Ceiling(convolution.output[dimension], convolution.window.dilation[dimension]), size.tile);
}

// In planes of one depth, of all images.
int64_t TileCount(const SpatialConvolution& convolution, const WinogradSizes& sizes) {
  const Triple& dilation = convolution.window.dilation;
  return convolution.batch * dilation[1] * dilation[2] * TilesAlong(convolution, 1, sizes.down) * TilesAlong(convolution, 2, sizes.across);
}

// Pairs of a depth of the result and a tap that meet data.
int64_t DepthPairs(const SpatialConvolution& convolution) {
  const VolumeWindow& window = convolution.window;
  const WindowUse use =
      UseAlong(window.kernel[0], window.dilation[0], convolution.output[0], window.stride[0], window.pad_begin[0], convolution.input[0]);
  return static_cast<int64_t>(use.pairs);
}

}  // namespace

Result<std::shared_ptr<const Program>> WinogradProgram::Make(const Chain& chain, const Form& form, const SpatialConvolution& convolution,
                                                             const WinogradSizes& sizes, const InstructionSet& instructions,
                                                             int64_t data_block, int64_t result_block, int64_t tiles, int threads) {
  auto program = std::make_shared<WinogradProgram>();
  program->convolution_ = convolution;
  program->sizes_ = sizes;
  program->loops_ = WinogradLoopsFor(sizes, instructions.lanes);
  program->data_block_ = data_block;
  program->result_block_ = result_block;
  program->SetDepths();
  program->Cut(instructions, tiles, threads);
  program->data_ = program->operands_.Of(chain, chain.base->inputs[0], form.data);
  program->PackWeights(chain.sequence->values[chain.base->inputs[1]].constant->Data<float>());
  program->tail_ = BoundTail(chain, chain.tail, form.result, program->operands_);
  COLLAGE_TRY_STATUS(program->MakeKernels());
  program->SetScratch();
  return program;
}

void WinogradProgram::SetDepths() {
  const VolumeWindow& window = convolution_.window;
  for (int64_t depth = 0; depth < convolution_.output[0]; ++depth) {
    const TapRange taps = TapsAt(convolution_, 0, depth);
    const auto known = std::find(depth_taps_.begin(), depth_taps_.end(), taps);
    depths_.push_back({depth * window.stride[0] + taps.first * window.dilation[0] - window.pad_begin[0],
                       static_cast<size_t>(known - depth_taps_.begin())});
    if (known == depth_taps_.end()) depth_taps_.push_back(taps);
  }
}

// Parts are as many for each thread. Where there are fewer parts than threads, several take the same part for different channels: the
// data are transformed several times, but weights, which are the larger then, are read once.
void WinogradProgram::Cut(const InstructionSet& instructions, int64_t tiles, int threads) {
  // Of a volume with several planes the library still has as many rows as it keeps in registers.
  constexpr int64_t kFewestRows = 6;
  tiles = std::max(tiles / convolution_.input[0], std::min(tiles, kFewestRows));
  tiles_down_ = TilesAlong(convolution_, 1, sizes_.down);
  tiles_across_ = TilesAlong(convolution_, 2, sizes_.across);
  tile_count_ = TileCount(convolution_, sizes_);
  const int64_t outputs = convolution_.output_channels;
  const int64_t lanes = instructions.lanes;
  const double operations =
      2.0 * static_cast<double>(sizes_.planes() * tile_count_ * DepthPairs(convolution_)) * static_cast<double>(InputsOfGroup() * outputs);
  const auto worth = static_cast<int64_t>(PiecesWorth(operations, static_cast<size_t>(tile_count_ * (outputs / lanes)), threads));
  part_count_ = Ceiling(tile_count_, std::max<int64_t>(tiles, 1));
  if (part_count_ > worth) part_count_ = std::min(Ceiling(part_count_, worth) * worth, tile_count_);
  const int64_t share_count = std::min(Ceiling(worth, part_count_), outputs / lanes);
  for (const auto& [first, count] : CutEvenly(outputs, Ceiling(outputs / lanes, share_count) * lanes, lanes)) {
    Share share{{first, count}, {}, {}, nullptr, {}};
    const int64_t of_group = outputs / convolution_.groups;
    for (int64_t group = first / of_group; group * of_group < first + count; ++group) {
      const int64_t from = std::max(first, group * of_group);
      const int64_t to = std::min(first + count, (group + 1) * of_group);
      for (const auto& [begin, columns] : CutEvenly(to - from, instructions.panel_columns, lanes))
        share.panels.push_back({from - first + begin, columns, group * InputsOfGroup()});
    }
    if (result_block_ == outputs) {
      for (const auto& [begin, columns] : CutEvenly(count, instructions.panel_columns, lanes)) share.chunks.push_back({begin, columns});
    } else {
      for (int64_t begin = 0; begin < count; begin += result_block_) share.chunks.push_back({begin, result_block_});
    }
    shares_.push_back(std::move(share));
  }
  pieces_ = static_cast<size_t>(std::min(worth, part_count_ * static_cast<int64_t>(shares_.size())));
}

void WinogradProgram::PackWeights(const float* weights) {
  const int64_t inputs = InputsOfGroup();
  const int64_t deep = convolution_.window.kernel[0];
  const int64_t taps = sizes_.down.taps * sizes_.across.taps;
  const WinogradWeights transform(sizes_);
  for (Share& share : shares_) {
    const int64_t plane_size = deep * inputs * share.columns.count;
    float* packed = operands_.Allocate(sizes_.planes() * plane_size);
    share.weights = packed;
    for (const Panel& panel : share.panels) {
      const float* kernels = weights + (share.columns.first + panel.first) * inputs * deep * taps;
      for (int64_t input = 0; input < inputs; ++input) {
        for (int64_t tap = 0; tap < deep; ++tap) {
          float* to = packed + panel.first * deep * inputs + (tap * inputs + input) * panel.count;
          transform.Transform(kernels + (input * deep + tap) * taps, inputs * deep * taps, panel.count, to, plane_size);
        }
      }
    }
  }
}

Status WinogradProgram::MakeKernels() {
  const int64_t inputs = InputsOfGroup();
  for (Share& share : shares_) {
    for (const int64_t more : {0, 1}) {
      if (more == 1 && tile_count_ % part_count_ == 0) continue;
      for (const TapRange& taps : depth_taps_) {
        std::vector<MicroKernel>& kernels = share.kernels[static_cast<size_t>(more)].emplace_back();
        for (const Panel& panel : share.panels) {
          MicroShape shape{FewestTiles() + more, panel.count,         inputs, convolution_.input_channels,
                           panel.count,          share.columns.count, {},     {}};
          for (int64_t tap = 0; tap < taps.count; ++tap) {
            shape.row_terms.push_back(tap * convolution_.window.dilation[0] * MostTiles() * convolution_.input_channels);
            shape.panel_terms.push_back((taps.first + tap) * inputs * panel.count);
          }
          kernels.push_back(COLLAGE_TRY(MicroKernel::Make(shape)));
        }
      }
    }
  }
  return {};
}

void WinogradProgram::SetScratch() {
  int64_t columns = 0;
  int64_t chunk_columns = 0;
  for (const Share& share : shares_) {
    columns = std::max(columns, share.columns.count);
    for (const Columns& chunk : share.chunks) chunk_columns = std::max(chunk_columns, chunk.count);
  }
  patch_plane_ = static_cast<int64_t>(WholeLines(convolution_.input[0] * MostTiles() * convolution_.input_channels + kPlaneGap));
  product_plane_ = static_cast<int64_t>(WholeLines(MostTiles() * columns + kPlaneGap));
  slot_ = WholeLines(kStoredPixels * chunk_columns);
  scratch_ = static_cast<size_t>(sizes_.planes() * (patch_plane_ + product_plane_)) +
             static_cast<size_t>(sizes_.down.tile) * tail_.slots() * slot_;
}

WinogradProgram::Place WinogradProgram::PlaceOf(int64_t tile) const {
  const Triple& dilation = convolution_.window.dilation;
  const int64_t across = tile % tiles_across_;
  const int64_t first_across = tile / tiles_across_ % dilation[2];
  tile /= tiles_across_ * dilation[2];
  const int64_t down = tile % tiles_down_;
  const int64_t first_down = tile / tiles_down_ % dilation[1];
  return {tile / (tiles_down_ * dilation[1]), first_down + down * sizes_.down.tile * dilation[1],
          first_across + across * sizes_.across.tile * dilation[2]};
}

void WinogradProgram::Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const {
  float* patches = scratch;
  float* products = patches + sizes_.planes() * patch_plane_;
  const Target target{inputs, result, products + sizes_.planes() * product_plane_};
  const auto parts = static_cast<size_t>(part_count_);
  const size_t items = parts * shares_.size();
  for (size_t item = items * piece / pieces_; item < items * (piece + 1) / pieces_; ++item) {
    const auto part = static_cast<int64_t>(item % parts);
    const Share& share = shares_[item / parts];
    TransformPart(part, data_.In(inputs), patches);
    for (size_t depth = 0; depth < depths_.size(); ++depth) {
      Multiply(part, share, depths_[depth], patches, products);
      StorePart(part, share, static_cast<int64_t>(depth), products, target);
    }
  }
}

void WinogradProgram::TransformPart(int64_t part, const float* data, float* patches) const {
  const auto [depths, height, width] = convolution_.input;
  const VolumeWindow& window = convolution_.window;
  const auto [dilation_deep, dilation_down, dilation_across] = window.dilation;
  const int64_t image = convolution_.input_channels * depths * height * width;
  WinogradPatch patch{};
  patch.row_stride = dilation_down * width * data_block_;
  patch.pixel_stride = dilation_across * data_block_;
  patch.block_stride = depths * height * width * data_block_;
  patch.channels = convolution_.input_channels;
  patch.block = data_block_;
  patch.plane_stride = patch_plane_;
  const int64_t patch_rows = sizes_.down.patch();
  const int64_t patch_columns = sizes_.across.patch();
  const int64_t begin = PartBegin(part);
  for (int64_t tile = begin; tile < PartBegin(part + 1); ++tile) {
    const Place place = PlaceOf(tile);
    const int64_t y = place.y - window.pad_begin[1];
    const int64_t x = place.x - window.pad_begin[2];
    // Nothing of a patch may be in the image at all.
    patch.first_row = std::clamp<int64_t>(Ceiling(-y, dilation_down), 0, patch_rows);
    patch.last_row = std::clamp<int64_t>(Ceiling(height - y, dilation_down), patch.first_row, patch_rows);
    patch.first_column = std::clamp<int64_t>(Ceiling(-x, dilation_across), 0, patch_columns);
    patch.last_column = std::clamp<int64_t>(Ceiling(width - x, dilation_across), patch.first_column, patch_columns);
    for (int64_t depth = 0; depth < depths; ++depth) {
      patch.data = data + place.image * image + ((depth * height + y) * width + x) * data_block_;
      patch.result = patches + (depth * MostTiles() + tile - begin) * patch.channels;
      loops_.transform_patch(patch);
    }
  }
}

// A plane after the other, so that its transformed data stay near while all panels pass by.
void WinogradProgram::Multiply(int64_t part, const Share& share, const Depth& depth, const float* patches, float* products) const {
  const auto more = static_cast<size_t>(PartBegin(part + 1) - PartBegin(part) - FewestTiles());
  const int64_t rows_of_weights = convolution_.window.kernel[0] * InputsOfGroup();
  const float* data = patches + depth.first_data * MostTiles() * convolution_.input_channels;
  for (int64_t plane = 0; plane < sizes_.planes(); ++plane) {
    const float* weights = share.weights + plane * rows_of_weights * share.columns.count;
    for (size_t p = 0; p < share.panels.size(); ++p) {
      const auto& [first, count, channel] = share.panels[p];
      share.kernels[more][depth.kind][p](data + plane * patch_plane_ + channel, weights + first * rows_of_weights,
                                         products + plane * product_plane_ + first);
    }
  }
}

void WinogradProgram::StorePart(int64_t part, const Share& share, int64_t depth, const float* products, const Target& target) const {
  const int64_t begin = PartBegin(part);
  const int64_t end = PartBegin(part + 1);
  for (int64_t tile = begin; tile < end;) {
    const int64_t left_in_row = tiles_across_ - tile % tiles_across_;
    const int64_t count = std::min({kStoredPixels / sizes_.across.tile, end - tile, left_in_row});
    for (const Columns& chunk : share.chunks) {
      const Row row{PlaceOf(tile), depth, count, products + (tile - begin) * share.columns.count + chunk.first};
      StoreChunk(row, share.columns.count, {share.columns.first + chunk.first, chunk.count}, target);
    }
    tile += count;
  }
}

void WinogradProgram::StoreChunk(const Row& row, int64_t tile_stride, const Columns& chunk, const Target& target) const {
  const auto [depths, height, width] = convolution_.output;
  const Triple& dilation = convolution_.window.dilation;
  const int64_t pixel = result_block_ * dilation[2];
  const int64_t image_row = width * result_block_ * dilation[1];
  const int64_t block = chunk.first / result_block_;
  const int64_t begin = (row.place.image * convolution_.output_channels + block * result_block_) * depths * height * width +
                        ((row.depth * height + row.place.y) * width + row.place.x) * result_block_ + chunk.first % result_block_;
  const int64_t rows = std::min(sizes_.down.tile, Ceiling(height - row.place.y, dilation[1]));
  const int64_t pixels = std::min(row.tiles * sizes_.across.tile, Ceiling(width - row.place.x, dilation[2]));
  if (rows <= 0 || pixels <= 0) return;
  const auto tail_of = [&](int64_t y) { return TailTile{pixels, chunk.count, begin + y * image_row, pixel, chunk.first}; };
  const auto slots = static_cast<int64_t>(tail_.slots() * slot_);
  for (int64_t y = 0; y < rows; ++y) tail_.Prefetch(tail_of(y), target.inputs);
  WinogradResults tile{};
  tile.plane_stride = product_plane_;
  tile.channels = chunk.count;
  tile.rows = rows;
  tile.row_stride = tail_.IsEmpty() ? image_row : slots;
  tile.pixel_stride = tail_.IsEmpty() ? pixel : chunk.count;
  float* to = tail_.IsEmpty() ? target.result + begin : target.scratch;
  for (int64_t t = 0; t < row.tiles; ++t) {
    tile.products = row.products + t * tile_stride;
    tile.columns = std::min(sizes_.across.tile, pixels - t * sizes_.across.tile);
    if (tile.columns <= 0) break;
    tile.result = to + t * sizes_.across.tile * tile.pixel_stride;
    loops_.transform_results(tile);
  }
  if (tail_.IsEmpty()) return;
  for (int64_t y = 0; y < rows; ++y) tail_.Run(tail_of(y), target.inputs, target.result, target.scratch + y * slots, slot_);
}

double WinogradWork(const SpatialConvolution& convolution, const WinogradSizes& sizes) {
  // As many multiplications and additions as a processor does while it reads an element from memory, about: 400 GFLOP/s beside 28 GB/s on
  // two cores of Sapphire Rapids, 508 beside some 60 on Zen 5.
  constexpr double kReading = 28;
  const auto products = static_cast<double>(TileCount(convolution, sizes) * DepthPairs(convolution));
  return static_cast<double>(sizes.planes()) * (products + kReading * static_cast<double>(convolution.window.kernel[0]));
}

std::vector<Form> WinogradForms(const SpatialConvolution& convolution, const WinogradSizes& sizes, const InstructionSet& instructions) {
  const int64_t lanes = instructions.lanes;
  const auto form = [&](const std::string& tag, int64_t data_block, int64_t result_block) {
    const auto make = [=](const Chain& of, const Form& self, int64_t tiles, int threads) {
      return WinogradProgram::Make(of, self, convolution, sizes, instructions, data_block, result_block, tiles, threads);
    };
    const std::string name = "winograd/" + std::to_string(sizes.down.tile) + "x" + std::to_string(sizes.across.tile) + "/" + tag;
    // Many tiles read weights seldom, few stay in the second-level cache.
    return Form{name, Layout::Of(tag), Layout::Of(tag), {"tiles", {32, 16, 64}}, make};
  };
  return {form(convolution.LastTag(), convolution.input_channels, convolution.output_channels),
          form(convolution.BlockedTag(lanes), lanes, lanes)};
}

bool MayBeWinograd(const SpatialConvolution& convolution, const WinogradSizes& sizes, const InstructionSet& instructions) {
  const VolumeWindow& window = convolution.window;
  const WindowUse deep =
      UseAlong(window.kernel[0], window.dilation[0], convolution.output[0], window.stride[0], window.pad_begin[0], convolution.input[0]);
  // Each depth of the result sees data.
  if (deep.positions < static_cast<double>(convolution.output[0])) return false;
  return window.stride[1] == 1 && window.stride[2] == 1 && convolution.input_channels % instructions.lanes == 0 &&
         convolution.output_channels % instructions.lanes == 0 && WinogradLoopsFor(sizes, instructions.lanes).transform_patch;
}

}  // namespace collage::xsmm
