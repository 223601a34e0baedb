#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collage/backend/xsmm/bound_tail.h"
#include "collage/backend/xsmm/forms.h"
#include "collage/backend/xsmm/group_loops.h"
#include "collage/backend/xsmm/operands.h"
#include "collage/backend/xsmm/program.h"

namespace collage::xsmm {

/// A convolution in groups of fewer channels than vectors have lanes, channels last: for one vector of channels of the result after the
/// other, row by row. The rows of the data that a window reads lie in scratch memory, spread over lanes (group_loops.h) and with their
/// padding, each until the last row of the result that reads it.
class SmallGroupsProgram final : public Program {
 public:
  /// In strips of about `pixels` pixels of the result.
  static Result<std::shared_ptr<const Program>> Make(const Chain& chain, const Form& form, const SpatialConvolution& convolution,
                                                     const InstructionSet& instructions, int64_t pixels, int threads);

  [[nodiscard]] size_t pieces() const override { return pieces_; }
  [[nodiscard]] size_t scratch_bytes() const override { return scratch_ * sizeof(float); }
  void Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const override;

 private:
  /// Rows of one plane of the result, of one vector of its channels, in one strip.
  struct Band {
    int64_t image, vector, depth;
    int64_t x, width;  ///< pixels of the result
    int64_t begin, end;
  };

  void PackWeights(const float* weights);
  [[nodiscard]] int64_t Depth() const { return convolution_.input_channels / convolution_.groups; }
  /// Pixels of the data, padding included, that a strip reads.
  [[nodiscard]] int64_t SpreadWidth(int64_t width) const;
  /// Rows of a plane of the data between the first and the last that a window reads, these included.
  [[nodiscard]] int64_t RowsKept() const { return (convolution_.window.kernel[1] - 1) * convolution_.window.dilation[1] + 1; }
  [[nodiscard]] int64_t RowSize() const { return SpreadWidth(strips_.front().second) * Depth() * lanes_; }
  void RunBand(const Band& band, std::span<const void* const> inputs, float* result, float* scratch) const;
  void Spread(const Band& band, int64_t z, int64_t y, const float* data, float* to) const;

  SpatialConvolution convolution_{};
  GroupLoops loops_{};
  int64_t lanes_ = 0;
  std::vector<std::pair<int64_t, int64_t>> strips_;  // first pixel and width; the first is the widest
  std::vector<std::vector<SpreadChannel>> spreads_;  // by vector
  bool reads_two_ = false;
  const float* weights_ = nullptr;  // [vectors][taps][channels of a group][lanes]
  Operands operands_;
  Source data_;
  BoundTail tail_;
  std::optional<BoundTail::InRegisters> in_registers_;
  size_t pieces_ = 1;
  size_t slot_ = 0;  // of the tail
  size_t scratch_ = 0;
};

/// Of a convolution in groups that are no whole vectors. The error says why no vector can be made of its groups.
Result<std::vector<Form>> SmallGroupsForms(const SpatialConvolution& convolution, const InstructionSet& instructions);

}  // namespace collage::xsmm
