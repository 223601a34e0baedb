#include "collage/backend/xsmm/winograd.h"

#include <algorithm>
#include <string>
#include <utility>

namespace collage::xsmm {
namespace {

// Without it, planes of a power of two of bytes would share the same sets of a cache, and each transform touches all planes.
constexpr int64_t kPlaneGap = 16;

// Pixels side by side whose results are stored, with their tail, together: they stay in the first-level cache.
constexpr int64_t kStoredPixels = 32;

int64_t Ceiling(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The results of a dilated convolution lie in so many images that have nothing to do with each other: every n-th pixel is of the same.
int64_t TilesAlong(const Convolution& convolution, size_t dimension, const WinogradSize& size) {
  return Ceiling(Ceiling(convolution.output[dimension], convolution.window.dilation[dimension]), size.tile);
}

// In all dimensions and images.
int64_t TileCount(const Convolution& convolution, const WinogradSizes& sizes) {
  const auto& dilation = convolution.window.dilation;
  return convolution.batch * dilation[0] * dilation[1] * TilesAlong(convolution, 0, sizes.down) * TilesAlong(convolution, 1, sizes.across);
}

}  // namespace

Result<std::shared_ptr<const Program>> WinogradProgram::Make(const Chain& chain, const Form& form, const Convolution& convolution,
                                                             const WinogradSizes& sizes, const InstructionSet& instructions,
                                                             int64_t data_block, int64_t result_block, int64_t tiles, int threads) {
  auto program = std::make_shared<WinogradProgram>();
  program->convolution_ = convolution;
  program->sizes_ = sizes;
  program->loops_ = WinogradLoopsFor(sizes, instructions.lanes);
  program->data_block_ = data_block;
  program->result_block_ = result_block;
  program->Cut(instructions, tiles, threads);
  program->data_ = program->operands_.Of(chain, chain.base->inputs[0], form.data);
  program->PackWeights(chain.sequence->values[chain.base->inputs[1]].constant->Data<float>());
  program->tail_ = BoundTail(chain, chain.tail, form.result, program->operands_);
  COLLAGE_TRY_STATUS(program->MakeKernels());
  program->SetScratch();
  return program;
}

// Parts are as many for each thread. Where there are fewer parts than threads, several take the same part for different channels: the
// data are transformed several times, but weights, which are the larger then, are read once.
void WinogradProgram::Cut(const InstructionSet& instructions, int64_t tiles, int threads) {
  tiles_down_ = TilesAlong(convolution_, 0, sizes_.down);
  tiles_across_ = TilesAlong(convolution_, 1, sizes_.across);
  tile_count_ = TileCount(convolution_, sizes_);
  const int64_t outputs = convolution_.output_channels;
  const int64_t lanes = instructions.lanes;
  const double operations =
      2.0 * static_cast<double>(sizes_.planes() * tile_count_) * static_cast<double>(convolution_.input_channels * outputs);
  const auto worth = static_cast<int64_t>(PiecesWorth(operations, static_cast<size_t>(tile_count_ * (outputs / lanes)), threads));
  part_count_ = Ceiling(tile_count_, std::max<int64_t>(tiles, 1));
  if (part_count_ > worth) part_count_ = std::min(Ceiling(part_count_, worth) * worth, tile_count_);
  const int64_t share_count = std::min(Ceiling(worth, part_count_), outputs / lanes);
  for (const auto& [first, count] : CutEvenly(outputs, Ceiling(outputs / lanes, share_count) * lanes, lanes)) {
    Share share{{first, count}, {}, {}, nullptr, {}};
    for (const auto& [begin, columns] : CutEvenly(count, instructions.panel_columns, lanes)) share.panels.push_back({begin, columns});
    if (result_block_ == outputs) {
      share.chunks = share.panels;
    } else {
      for (int64_t begin = 0; begin < count; begin += result_block_) share.chunks.push_back({begin, result_block_});
    }
    shares_.push_back(std::move(share));
  }
  pieces_ = static_cast<size_t>(std::min(worth, part_count_ * static_cast<int64_t>(shares_.size())));
}

void WinogradProgram::PackWeights(const float* weights) {
  const int64_t inputs = convolution_.input_channels;
  const int64_t taps = sizes_.down.taps * sizes_.across.taps;
  for (Share& share : shares_) {
    float* packed = operands_.Allocate(sizes_.planes() * inputs * share.columns.count);
    share.weights = packed;
    for (const Columns& panel : share.panels) {
      for (int64_t output = 0; output < panel.count; ++output) {
        const float* kernels = weights + (share.columns.first + panel.first + output) * inputs * taps;
        for (int64_t input = 0; input < inputs; ++input) {
          float planes[kMostWinogradPlanes];
          TransformWinogradWeights(sizes_, kernels + input * taps, planes);
          float* to = packed + panel.first * inputs + input * panel.count + output;
          for (int64_t plane = 0; plane < sizes_.planes(); ++plane) to[plane * inputs * share.columns.count] = planes[plane];
        }
      }
    }
  }
}

Status WinogradProgram::MakeKernels() {
  const int64_t inputs = convolution_.input_channels;
  for (Share& share : shares_) {
    for (const int64_t more : {0, 1}) {
      if (more == 1 && tile_count_ % part_count_ == 0) continue;
      for (const Columns& panel : share.panels) {
        const MicroShape shape{FewestTiles() + more, panel.count, inputs, inputs, panel.count, share.columns.count};
        share.kernels[static_cast<size_t>(more)].push_back(COLLAGE_TRY(MicroKernel::Make(shape)));
      }
    }
  }
  return {};
}

void WinogradProgram::SetScratch() {
  const int64_t tiles = FewestTiles() + (tile_count_ % part_count_ == 0 ? 0 : 1);
  int64_t columns = 0;
  int64_t chunk_columns = 0;
  for (const Share& share : shares_) {
    columns = std::max(columns, share.columns.count);
    for (const Columns& chunk : share.chunks) chunk_columns = std::max(chunk_columns, chunk.count);
  }
  patch_plane_ = static_cast<int64_t>(WholeLines(tiles * convolution_.input_channels + kPlaneGap));
  product_plane_ = static_cast<int64_t>(WholeLines(tiles * columns + kPlaneGap));
  slot_ = WholeLines(kStoredPixels * chunk_columns);
  scratch_ = static_cast<size_t>(sizes_.planes() * (patch_plane_ + product_plane_)) +
             static_cast<size_t>(sizes_.down.tile) * tail_.slots() * slot_;
}

WinogradProgram::Place WinogradProgram::PlaceOf(int64_t tile) const {
  const auto& dilation = convolution_.window.dilation;
  const int64_t across = tile % tiles_across_;
  const int64_t first_across = tile / tiles_across_ % dilation[1];
  tile /= tiles_across_ * dilation[1];
  const int64_t down = tile % tiles_down_;
  const int64_t first_down = tile / tiles_down_ % dilation[0];
  return {tile / (tiles_down_ * dilation[0]), first_down + down * sizes_.down.tile * dilation[0],
          first_across + across * sizes_.across.tile * dilation[1]};
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
    Multiply(part, share, patches, products);
    StorePart(part, share, products, target);
  }
}

void WinogradProgram::TransformPart(int64_t part, const float* data, float* patches) const {
  const auto [height, width] = convolution_.input;
  const Window& window = convolution_.window;
  const auto& dilation = window.dilation;
  WinogradPatch patch{};
  patch.row_stride = dilation[0] * width * data_block_;
  patch.pixel_stride = dilation[1] * data_block_;
  patch.block_stride = height * width * data_block_;
  patch.channels = convolution_.input_channels;
  patch.block = data_block_;
  patch.plane_stride = patch_plane_;
  const int64_t begin = PartBegin(part);
  for (int64_t tile = begin; tile < PartBegin(part + 1); ++tile) {
    const Place place = PlaceOf(tile);
    const int64_t y = place.y - window.pad_begin[0];
    const int64_t x = place.x - window.pad_begin[1];
    // Nothing of a patch may be in the image at all.
    const auto [patch_rows, patch_columns] = std::pair(sizes_.down.patch(), sizes_.across.patch());
    patch.first_row = std::clamp<int64_t>(Ceiling(-y, dilation[0]), 0, patch_rows);
    patch.last_row = std::clamp<int64_t>(Ceiling(height - y, dilation[0]), patch.first_row, patch_rows);
    patch.first_column = std::clamp<int64_t>(Ceiling(-x, dilation[1]), 0, patch_columns);
    patch.last_column = std::clamp<int64_t>(Ceiling(width - x, dilation[1]), patch.first_column, patch_columns);
    patch.data = data + place.image * patch.channels * height * width + (y * width + x) * data_block_;
    patch.result = patches + (tile - begin) * patch.channels;
    loops_.transform_patch(patch);
  }
}

// A plane after the other, so that its transformed data stay near while all panels pass by.
void WinogradProgram::Multiply(int64_t part, const Share& share, const float* patches, float* products) const {
  const auto more = static_cast<size_t>(PartBegin(part + 1) - PartBegin(part) - FewestTiles());
  const int64_t inputs = convolution_.input_channels;
  for (int64_t plane = 0; plane < sizes_.planes(); ++plane) {
    const float* weights = share.weights + plane * inputs * share.columns.count;
    for (size_t p = 0; p < share.panels.size(); ++p) {
      const int64_t first = share.panels[p].first;
      share.kernels[more][p](patches + plane * patch_plane_, weights + first * inputs, products + plane * product_plane_ + first);
    }
  }
}

void WinogradProgram::StorePart(int64_t part, const Share& share, const float* products, const Target& target) const {
  const int64_t begin = PartBegin(part);
  const int64_t end = PartBegin(part + 1);
  for (int64_t tile = begin; tile < end;) {
    const int64_t left_in_row = tiles_across_ - tile % tiles_across_;
    const int64_t count = std::min({kStoredPixels / sizes_.across.tile, end - tile, left_in_row});
    for (const Columns& chunk : share.chunks) {
      const Row row{PlaceOf(tile), count, products + (tile - begin) * share.columns.count + chunk.first};
      StoreChunk(row, share.columns.count, {share.columns.first + chunk.first, chunk.count}, target);
    }
    tile += count;
  }
}

void WinogradProgram::StoreChunk(const Row& row, int64_t tile_stride, const Columns& chunk, const Target& target) const {
  const auto [height, width] = convolution_.output;
  const auto& dilation = convolution_.window.dilation;
  const int64_t pixel = result_block_ * dilation[1];
  const int64_t image_row = width * result_block_ * dilation[0];
  const int64_t block = chunk.first / result_block_;
  const int64_t begin = (row.place.image * convolution_.output_channels + block * result_block_) * height * width +
                        (row.place.y * width + row.place.x) * result_block_ + chunk.first % result_block_;
  const int64_t rows = std::min(sizes_.down.tile, Ceiling(height - row.place.y, dilation[0]));
  const int64_t pixels = std::min(row.tiles * sizes_.across.tile, Ceiling(width - row.place.x, dilation[1]));
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

double WinogradCost(const Convolution& convolution, const WinogradSizes& sizes) {
  // As many multiplications and additions as a processor does while it reads an element from memory, about: 400 GFLOP/s beside 28 GB/s on
  // two cores of Sapphire Rapids, 508 beside some 60 on Zen 5.
  constexpr double kReading = 28;
  return static_cast<double>(sizes.planes()) * (static_cast<double>(TileCount(convolution, sizes)) + kReading);
}

std::vector<Form> WinogradForms(const Convolution& convolution, const WinogradSizes& sizes, const InstructionSet& instructions) {
  const int64_t lanes = instructions.lanes;
  const auto form = [&](const std::string& tag, int64_t data_block, int64_t result_block) {
    const auto make = [=](const Chain& of, const Form& self, int64_t tiles, int threads) {
      return WinogradProgram::Make(of, self, convolution, sizes, instructions, data_block, result_block, tiles, threads);
    };
    const std::string name = "winograd/" + std::to_string(sizes.down.tile) + "x" + std::to_string(sizes.across.tile) + "/" + tag;
    // Many tiles read weights seldom, few stay in the second-level cache.
    return Form{name, Layout::Of(tag), Layout::Of(tag), {"tiles", {32, 16, 64}}, make};
  };
  return {form("acdb", convolution.input_channels, convolution.output_channels), form("aBcd" + std::to_string(lanes) + "b", lanes, lanes)};
}

bool MayBeWinograd(const Convolution& convolution, const WinogradSizes& sizes, const InstructionSet& instructions) {
  return convolution.window.stride == std::array<int64_t, 2>{1, 1} && convolution.input_channels % instructions.lanes == 0 &&
         convolution.output_channels % instructions.lanes == 0 && WinogradLoopsFor(sizes, instructions.lanes).transform_patch;
}

}  // namespace collage::xsmm
