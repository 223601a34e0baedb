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
/// weights, and transformed back, all by one thread, so that nothing in between leaves its cache. Along the depth of volumes nothing is
/// transformed: a part has the tiles of all depths, and its products are sums over the taps that meet data.
class WinogradProgram final : public Program {
 public:
  /// Parts of about `tiles` tiles. Channels lie in blocks of `data_block` and `result_block`.
  static Result<std::shared_ptr<const Program>> Make(const Chain& chain, const Form& form, const SpatialConvolution& convolution,
                                                     const WinogradSizes& sizes, const InstructionSet& instructions, int64_t data_block,
                                                     int64_t result_block, int64_t tiles, int threads);

  [[nodiscard]] size_t pieces() const override { return pieces_; }
  [[nodiscard]] size_t scratch_bytes() const override { return scratch_ * sizeof(float); }
  void Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const override;

 private:
  struct Columns {
    int64_t first, count;
  };
  /// Channels of one group of the result that a product computes.
  struct Panel {
    int64_t first;  ///< from the share's first
    int64_t count;
    int64_t data;  ///< first channel of the data
  };
  /// Channels of the result that are computed together, from the same transformed data.
  struct Share {
    Columns columns;
    std::vector<Panel> panels;
    std::vector<Columns> chunks;     // that lie side by side in the result
    const float* weights = nullptr;  // for each plane, for each panel, [taps of the depth][channels of a group][columns]
    /// By the kind of depth and panel, for parts of the fewest tiles and of one more.
    std::array<std::vector<std::vector<MicroKernel>>, 2> kernels;
  };
  /// A depth of the result.
  struct Depth {
    int64_t first_data;  ///< depth of the data that the first tap meets
    size_t kind;         ///< of those that meet data by the same taps
  };
  /// Where tile number `tile`, counted over all images, begins: perhaps behind the end of the image.
  struct Place {
    int64_t image, y, x;
  };

  void SetDepths();
  void Cut(const InstructionSet& instructions, int64_t tiles, int threads);
  void PackWeights(const float* weights);
  Status MakeKernels();
  void SetScratch();
  [[nodiscard]] Place PlaceOf(int64_t tile) const;
  /// Parts differ by one tile at most.
  [[nodiscard]] int64_t PartBegin(int64_t part) const { return tile_count_ * part / part_count_; }
  [[nodiscard]] int64_t FewestTiles() const { return tile_count_ / part_count_; }
  [[nodiscard]] int64_t InputsOfGroup() const { return convolution_.input_channels / convolution_.groups; }
  [[nodiscard]] int64_t MostTiles() const { return FewestTiles() + (tile_count_ % part_count_ == 0 ? 0 : 1); }
  void TransformPart(int64_t part, const float* data, float* patches) const;
  void Multiply(int64_t part, const Share& share, const Depth& depth, const float* patches, float* products) const;
  /// Tiles side by side in one image, and where their products begin.
  struct Row {
    Place place;
    int64_t depth;
    int64_t tiles;
    const float* products;
  };
  struct Target {
    std::span<const void* const> inputs;
    float* result;
    float* scratch;  // of the tail
  };
  void StorePart(int64_t part, const Share& share, int64_t depth, const float* products, const Target& target) const;
  void StoreChunk(const Row& row, int64_t tile_stride, const Columns& chunk, const Target& target) const;

  SpatialConvolution convolution_{};
  WinogradSizes sizes_{};
  WinogradLoops loops_{};
  int64_t data_block_ = 0;
  int64_t result_block_ = 0;
  int64_t tiles_down_ = 0;  // of one of the images of which a dilated convolution's results are made
  int64_t tiles_across_ = 0;
  int64_t tile_count_ = 0;  // of all images, of one depth
  int64_t part_count_ = 0;
  std::vector<Share> shares_;
  std::vector<Depth> depths_;
  std::vector<TapRange> depth_taps_;  // by kind
  Operands operands_;
  Source data_;
  BoundTail tail_;
  size_t pieces_ = 1;
  int64_t patch_plane_ = 0;  // elements from plane to plane of transformed data
  int64_t product_plane_ = 0;
  size_t slot_ = 0;  // of the tail
  size_t scratch_ = 0;
};

/// Strides of 1 in a plane, whole vectors of channels, and a size for which there are transforms.
bool MayBeWinograd(const SpatialConvolution& convolution, const WinogradSizes& sizes, const InstructionSet& instructions);
/// What a size takes, in multiplications for each pair of channels: those of all tiles, and as many as take as long as reading the weights.
/// Tiles of one result are the convolution by its definition.
double WinogradWork(const SpatialConvolution& convolution, const WinogradSizes& sizes);
/// Of a convolution that may be so.
std::vector<Form> WinogradForms(const SpatialConvolution& convolution, const WinogradSizes& sizes, const InstructionSet& instructions);

}  // namespace collage::xsmm
