#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collage/backend/xsmm/bound_tail.h"
#include "collage/backend/xsmm/forms.h"
#include "collage/backend/xsmm/micro_kernel.h"
#include "collage/backend/xsmm/operands.h"
#include "collage/backend/xsmm/program.h"

namespace collage::xsmm {

/// A product, tile by tile, each with its tail.
class TileProgram final : public Program {
 public:
  static Result<std::shared_ptr<const Program>> Make(const Chain& chain, const Form& form, Tiling tiling, int threads);

  [[nodiscard]] size_t pieces() const override { return pieces_; }
  [[nodiscard]] size_t scratch_bytes() const override { return scratch_ * sizeof(float); }
  void Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const override;

 private:
  /// Some depths of a tile's product, added to those before.
  struct DepthPart {
    int64_t begin;
    MicroKernel kernel;
    std::optional<MicroKernel> fetching = {};  ///< the same, and what is read next comes nearer
  };

  Status MakeKernels();
  Result<std::vector<DepthPart>> MakeParts(const Tiling::Rows& rows, const Tiling::Panel& panel) const;
  void SetScratch();
  const float* Packed(const Tensor& constant);

  Tiling tiling_;
  Operands operands_;
  Source rows_, panels_;
  BoundTail tail_;
  std::vector<std::vector<DepthPart>> kernels_;
  std::vector<std::vector<size_t>> kernel_of_;  // by rows and panel
  size_t pieces_ = 1;
  size_t slot_ = 0;     // elements of a tile in scratch memory
  size_t scratch_ = 0;  // elements of a piece
};

}  // namespace collage::xsmm
