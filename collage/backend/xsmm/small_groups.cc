#include "collage/backend/xsmm/small_groups.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <tuple>

#include "collage/backend/xsmm/depthwise_loops.h"

namespace collage::xsmm {
namespace {

int64_t PixelsOf(const Triple& extents) { return extents[0] * extents[1] * extents[2]; }

}  // namespace

Result<std::shared_ptr<const Program>> SmallGroupsProgram::Make(const Chain& chain, const Form& form, const SpatialConvolution& convolution,
                                                                const InstructionSet& instructions, int64_t pixels, int threads) {
  auto program = std::make_shared<SmallGroupsProgram>();
  program->convolution_ = convolution;
  program->lanes_ = instructions.lanes;
  program->loops_ = GroupLoopsFor(instructions.lanes);
  program->strips_ = CutEvenly(convolution.output[2], std::max<int64_t>(pixels, 1), 1);
  for (int64_t first = 0; first < convolution.output_channels; first += instructions.lanes) {
    program->spreads_.push_back(
        SpreadChannels(convolution.input_channels, convolution.output_channels, convolution.groups, first, instructions.lanes));
    for (const SpreadChannel& channel : program->spreads_.back())
      program->reads_two_ |= *std::max_element(channel.lane_from.begin(), channel.lane_from.end()) >= instructions.lanes;
  }
  program->data_ = program->operands_.Of(chain, chain.base->inputs[0], form.data);
  program->PackWeights(chain.sequence->values[chain.base->inputs[1]].constant->Data<float>());
  program->tail_ = BoundTail(chain, chain.tail, form.result, program->operands_);
  program->in_registers_ = program->tail_.AsInRegisters();
  const Triple& output = convolution.output;
  const int64_t items = convolution.batch * static_cast<int64_t>(program->spreads_.size()) * PixelsOf(output);
  const double operations = 2.0 * static_cast<double>(items * instructions.lanes * program->Depth() * convolution.window.Taps());
  const int64_t rows = items / output[2] * static_cast<int64_t>(program->strips_.size());
  program->pieces_ = PiecesWorth(operations, static_cast<size_t>(rows), threads);
  const int64_t widest = program->strips_.front().second;
  program->slot_ = WholeLines(widest * instructions.lanes);
  program->scratch_ = WholeLines(convolution.window.kernel[0] * program->RowsKept() * program->RowSize());
  if (!program->in_registers_) program->scratch_ += program->tail_.slots() * program->slot_;
  return program;
}

void SmallGroupsProgram::PackWeights(const float* weights) {
  const int64_t taps = convolution_.window.Taps();
  const int64_t depth = Depth();
  float* packed = operands_.Allocate(convolution_.output_channels * taps * depth);
  weights_ = packed;
  for (int64_t first = 0; first < convolution_.output_channels; first += lanes_) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t j = 0; j < depth; ++j) {
        for (int64_t lane = 0; lane < lanes_; ++lane) *packed++ = weights[((first + lane) * depth + j) * taps + tap];
      }
    }
  }
}

int64_t SmallGroupsProgram::SpreadWidth(int64_t width) const {
  const VolumeWindow& window = convolution_.window;
  return (width - 1) * window.stride[2] + (window.kernel[2] - 1) * window.dilation[2] + 1;
}

void SmallGroupsProgram::Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const {
  const int64_t height = convolution_.output[1];
  const int64_t bands = convolution_.batch * static_cast<int64_t>(strips_.size() * spreads_.size()) * convolution_.output[0];
  const auto count = static_cast<int64_t>(pieces_);
  const int64_t end = bands * height * (static_cast<int64_t>(piece) + 1) / count;
  for (int64_t row = bands * height * static_cast<int64_t>(piece) / count; row < end;) {
    int64_t number = row / height;
    const int64_t last = std::min(end, (number + 1) * height);
    Band band{};
    band.begin = row - number * height;
    band.end = last - number * height;
    band.depth = number % convolution_.output[0];
    number /= convolution_.output[0];
    band.vector = number % static_cast<int64_t>(spreads_.size());
    number /= static_cast<int64_t>(spreads_.size());
    std::tie(band.x, band.width) = strips_[static_cast<size_t>(number) % strips_.size()];
    band.image = number / static_cast<int64_t>(strips_.size());
    RunBand(band, inputs, result, scratch);
    row = last;
  }
}

// One row of the data, zero where there is only padding.
void SmallGroupsProgram::Spread(const Band& band, int64_t z, int64_t y, const float* data, float* to) const {
  const Triple& input = convolution_.input;
  const int64_t pixel = Depth() * lanes_;
  const int64_t width = SpreadWidth(band.width);
  const int64_t begin = band.x * convolution_.window.stride[2] - convolution_.window.pad_begin[2];
  const int64_t first = std::clamp<int64_t>(-begin, 0, width);
  const int64_t last = std::clamp<int64_t>(input[2] - begin, first, width);
  std::fill(to, to + first * pixel, 0.0F);
  std::fill(to + last * pixel, to + width * pixel, 0.0F);
  if (first == last) return;
  const int64_t place = ((band.image * input[0] + z) * input[1] + y) * input[2] + begin + first;
  const std::vector<SpreadChannel>& channels = spreads_[static_cast<size_t>(band.vector)];
  const SpreadRow row{
      data + place * convolution_.input_channels, convolution_.input_channels, last - first, channels.data(), Depth(), to + first * pixel};
  (reads_two_ ? loops_.spread_two : loops_.spread_one)(row);
}

void SmallGroupsProgram::RunBand(const Band& band, std::span<const void* const> inputs, float* result, float* scratch) const {
  const VolumeWindow& window = convolution_.window;
  const float* data = data_.In(inputs);
  const int64_t kept = RowsKept();
  const int64_t row_size = RowSize();
  const int64_t channel = band.vector * lanes_;
  float* tiles = scratch + WholeLines(window.kernel[0] * kept * row_size);
  const TapRange deep = TapsAt(convolution_, 0, band.depth);
  const int64_t first_z = band.depth * window.stride[0] - window.pad_begin[0];
  GroupedRow row{};
  row.taps = window.kernel[2];
  row.depth = Depth();
  row.stride = window.stride[2];
  row.dilation = window.dilation[2];
  row.low = -std::numeric_limits<float>::infinity();
  row.high = std::numeric_limits<float>::infinity();
  row.count = band.width;
  if (in_registers_) {
    row.low = in_registers_->bounds.low;
    row.high = in_registers_->bounds.high;
    if (in_registers_->bias) row.bias = in_registers_->bias->In(inputs) + channel;
  }
  const bool is_stored = in_registers_ || tail_.IsEmpty();
  std::array<GroupedRow::WindowRow, kMostWindowRows> rows{};
  row.rows = rows.data();
  int64_t next = 0;  // row of the data that has not been spread
  for (int64_t y = band.begin; y < band.end; ++y) {
    const TapRange down = TapsAt(convolution_, 1, y);
    const int64_t begin = y * window.stride[1] - window.pad_begin[1];
    const int64_t last = begin + (down.first + down.count - 1) * window.dilation[1];
    // From where the window begins: of a dilated one, later rows see what lies between its taps.
    for (next = std::max(next, begin); down.count > 0 && next <= last; ++next) {
      for (int64_t tap = deep.first; tap < deep.first + deep.count; ++tap)
        Spread(band, first_z + tap * window.dilation[0], next, data, scratch + (tap * kept + next % kept) * row_size);
    }
    row.row_count = 0;
    for (int64_t tap = deep.first; tap < deep.first + deep.count; ++tap) {
      for (int64_t t = down.first; t < down.first + down.count; ++t) {
        const int64_t slot = tap * kept + (begin + t * window.dilation[1]) % kept;
        const int64_t number = (band.vector * window.kernel[0] + tap) * window.kernel[1] + t;
        rows[static_cast<size_t>(row.row_count++)] = {scratch + slot * row_size, weights_ + number * row.taps * row.depth * lanes_};
      }
    }
    const int64_t pixel =
        ((band.image * convolution_.output[0] + band.depth) * convolution_.output[1] + y) * convolution_.output[2] + band.x;
    const TailTile tile{band.width, lanes_, pixel * convolution_.output_channels + channel, convolution_.output_channels, channel};
    if (!is_stored) tail_.Prefetch(tile, inputs);
    row.result = is_stored ? result + tile.result : tiles;
    row.result_pixel = is_stored ? tile.result_stride : lanes_;
    loops_.convolve(row);
    if (!is_stored) tail_.Run(tile, inputs, result, tiles, slot_);
  }
}

Result<std::vector<Form>> SmallGroupsForms(const SpatialConvolution& convolution, const InstructionSet& instructions) {
  const VolumeWindow& window = convolution.window;
  const int64_t lanes = instructions.lanes;
  if (convolution.groups == convolution.input_channels && convolution.groups == convolution.output_channels)
    return Fail("libxsmm: a depthwise convolution is computed in a chain only");
  if (convolution.output_channels % lanes != 0) return Fail("libxsmm: the channels of a convolution in small groups are no whole vectors");
  if (window.kernel[0] * window.kernel[1] > kMostWindowRows)
    return Fail("libxsmm: of a convolution in small groups a window has more than " + std::to_string(kMostWindowRows) + " rows");
  for (int64_t first = 0; first < convolution.output_channels; first += lanes) {
    if (SpreadChannels(convolution.input_channels, convolution.output_channels, convolution.groups, first, lanes).empty())
      return Fail("libxsmm: what a vector of channels reads of a pixel does not lie in two vectors");
  }
  // What a strip keeps of the data is half of a first-level cache of 48 KB, beside which the weights are few; but no less than what has its
  // sums in registers at once.
  constexpr int64_t kCached = int64_t{24} * 1024 / static_cast<int64_t>(sizeof(float));
  const int64_t rows = window.kernel[0] * ((window.kernel[1] - 1) * window.dilation[1] + 1);
  const int64_t of_pixel = rows * window.stride[2] * convolution.input_channels / convolution.groups * lanes;
  const int64_t usual = std::min(std::max(kCached / of_pixel, GroupLoopsFor(lanes).pixels), convolution.output[2]);
  TuningParameter pixels{"pixels", {static_cast<int>(usual)}};
  for (const int more : {7, 14, 28, 56, 112}) {
    if (more != usual && more < convolution.output[2]) pixels.values.push_back(more);
  }
  if (usual < convolution.output[2]) pixels.values.push_back(static_cast<int>(convolution.output[2]));
  const std::string tag = convolution.LastTag();
  const auto make = [=](const Chain& of, const Form& self, int64_t width, int threads) {
    return SmallGroupsProgram::Make(of, self, convolution, instructions, width, threads);
  };
  return std::vector<Form>{{"groups/" + tag, LayoutOfImage(tag, convolution.input_channels, PixelsOf(convolution.input)),
                            LayoutOfImage(tag, convolution.output_channels, PixelsOf(convolution.output)), std::move(pixels), make}};
}

}  // namespace collage::xsmm
