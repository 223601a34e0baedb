#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collage/backend/xsmm/forms.h"
#include "collage/tensor/tensor.h"

namespace collage::xsmm {

/// All that a kernel runs, with its constants packed. Nothing in it changes, so kernels in several threads share one.
class TileProgram {
 public:
  static Result<std::shared_ptr<const TileProgram>> Make(const Chain& chain, const Form& form, int64_t tile_rows, int threads);

  /// Parts of the work that threads take; each needs scratch memory of its own.
  [[nodiscard]] size_t pieces() const { return pieces_; }
  [[nodiscard]] size_t scratch_bytes() const { return scratch_ * sizeof(float); }

  /// One of the pieces, by the calling thread. `scratch` is its own, 64-byte aligned.
  void Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const;

 private:
  /// Where a tensor is read: a constant, or a port of the kernel.
  struct Source {
    const float* constant = nullptr;
    size_t port = 0;

    [[nodiscard]] const float* In(std::span<const void* const> inputs) const {
      return constant ? constant : static_cast<const float*>(inputs[port]);
    }
  };
  struct Step {
    TailStep step;
    Source first, second, third;  // of arguments that are no slots
  };
  struct Tile {
    const Tiling::Rows* rows;
    const Tiling::Panel* panel;
    int64_t result;  // where it begins
  };

  Status Build(const Chain& chain, const Form& form, int64_t tile_rows, int threads);
  Status MakeKernels();
  void SetScratch();
  Source SourceOf(const Chain& chain, size_t value, const Layout& layout);
  const float* Keep(const void* data, size_t bytes);
  const float* KeepPacked(const Tensor& constant);
  void Prefetch(const float* whole, const Tile& tile) const;
  void RunTail(const Tile& tile, std::span<const void* const> inputs, float* result, float* scratch) const;
  [[nodiscard]] TileView ViewOf(const TailArgument& argument, const Source& source, const Tile& tile, std::span<const void* const> inputs,
                                const float* scratch) const;

  Tiling tiling_;
  Source rows_, panels_;
  std::vector<Step> steps_;
  std::vector<Source> wholes_;  // tensors of the result's shape that the steps read
  size_t slots_ = 0;
  std::vector<MicroKernel> kernels_;
  std::vector<std::vector<size_t>> kernel_of_;  // by number of rows and panel
  size_t pieces_ = 1;
  size_t slot_ = 0;                                  // elements of a tile in scratch memory
  size_t scratch_ = 0;                               // elements of a piece
  std::vector<std::shared_ptr<std::byte>> storage_;  // of the constants
};

}  // namespace collage::xsmm
