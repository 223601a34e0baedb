#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "collage/backend/xsmm/bound_tail.h"
#include "collage/backend/xsmm/forms.h"
#include "collage/backend/xsmm/operands.h"
#include "collage/backend/xsmm/program.h"
#include "collage/backend/xsmm/winograd_loops.h"

namespace collage::xsmm {

/// A convolution by Winograd's algorithm, part by part: some tiles' data are transformed, multiplied plane by plane by the transformed
/// weights, and transformed back, all by one thread, so that nothing in between leaves its cache.
class WinogradProgram final : public Program {
 public:
  /// Parts of about `tiles` tiles. Channels lie in blocks of `data_block` and `result_block`.
  static Result<std::shared_ptr<const Program>> Make(const Chain& chain, const Form& form, const Convolution& convolution,
                                                     const WinogradSizes& sizes, const InstructionSet& instructions, int64_t data_block,
                                                     int64_t result_block, int64_t tiles, int threads);

  [[nodiscard]] size_t pieces() const override { return pieces_; }
  [[nodiscard]] size_t scratch_bytes() const override { return scratch_ * sizeof(float); }
  void Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const override;

 private:
  struct Columns {
    int64_t first, count;
  };
  /// Channels of the result that are computed together, from the same transformed data.
  struct Share {
    Columns columns;
    std::vector<Columns> panels;                      // that a product computes, from the share's first
    std::vector<Columns> chunks;                      // that lie side by side in the result
    const float* weights = nullptr;                   // for each plane, for each panel, [channels of the data][columns]
    std::array<std::vector<MicroKernel>, 2> kernels;  // by panel, for parts of the fewest tiles and of one more
  };
  /// Where tile number `tile`, counted over all images, begins: perhaps behind the end of the image.
  struct Place {
    int64_t image, y, x;
  };

  void Cut(const InstructionSet& instructions, int64_t tiles, int threads);
  void PackWeights(const float* weights);
  Status MakeKernels();
  void SetScratch();
  [[nodiscard]] Place PlaceOf(int64_t tile) const;
  /// Parts differ by one tile at most.
  [[nodiscard]] int64_t PartBegin(int64_t part) const { return tile_count_ * part / part_count_; }
  [[nodiscard]] int64_t FewestTiles() const { return tile_count_ / part_count_; }
  void TransformPart(int64_t part, const float* data, float* patches) const;
  void Multiply(int64_t part, const Share& share, const float* patches, float* products) const;
  /// Tiles side by side in one image, and where their products begin.
  struct Row {
    Place place;
    int64_t tiles;
    const float* products;
  };
  struct Target {
    std::span<const void* const> inputs;
    float* result;
    float* scratch;  // of the tail
  };
  void StorePart(int64_t part, const Share& share, const float* products, const Target& target) const;
  void StoreChunk(const Row& row, int64_t tile_stride, const Columns& chunk, const Target& target) const;

  Convolution convolution_{};
  WinogradSizes sizes_{};
  WinogradLoops loops_{};
  int64_t data_block_ = 0;
  int64_t result_block_ = 0;
  int64_t tiles_down_ = 0;  // of one of the images of which a dilated convolution's results are made
  int64_t tiles_across_ = 0;
  int64_t tile_count_ = 0;  // of all images
  int64_t part_count_ = 0;
  std::vector<Share> shares_;
  Operands operands_;
  Source data_;
  BoundTail tail_;
  size_t pieces_ = 1;
  int64_t patch_plane_ = 0;  // elements from plane to plane of transformed data
  int64_t product_plane_ = 0;
  size_t slot_ = 0;  // of the tail
  size_t scratch_ = 0;
};

/// Strides of 1, whole vectors of channels, and a size for which there are transforms.
bool MayBeWinograd(const Convolution& convolution, const WinogradSizes& sizes, const InstructionSet& instructions);
/// By size, in multiplications for each pair of channels: those of all tiles, and what reading the weights takes beside. A tile of one
/// result is the convolution by its definition.
double WinogradCost(const Convolution& convolution, const WinogradSizes& sizes);
/// Of a convolution that may be so.
std::vector<Form> WinogradForms(const Convolution& convolution, const WinogradSizes& sizes, const InstructionSet& instructions);

}  // namespace collage::xsmm
