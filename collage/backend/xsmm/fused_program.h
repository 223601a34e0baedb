#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "collage/backend/xsmm/bound_tail.h"
#include "collage/backend/xsmm/depthwise_loops.h"
#include "collage/backend/xsmm/forms.h"
#include "collage/backend/xsmm/fused_rows.h"
#include "collage/backend/xsmm/operands.h"
#include "collage/backend/xsmm/pointwise_loops.h"
#include "collage/backend/xsmm/program.h"
#include "collage/op/window.h"

namespace collage::xsmm {

/// What a chain of several convolutions is made of.
enum class FusedKind {
  kPointwise,  ///< by 1x1: a product
  kDepthwise,  ///< a window for each channel
};
/// Errors say why a convolution is neither.
Result<FusedKind> FusedKindOf(const Convolution& convolution);

/// Several convolutions, channels last, in one go (Alwani et al., "Fused-layer CNN accelerators", 2016): each thread takes its rows of the
/// last result a few at a time through all of them, so that what lies between stays in its second-level cache, and nothing is waited for.
class FusedProgram final : public Program {
 public:
  /// Takes at most `rows` rows of the last result a step. `convolutions` are those of the chain, in order.
  static Result<std::shared_ptr<const Program>> Make(const Chain& chain, const Form& form, const std::vector<Convolution>& convolutions,
                                                     const InstructionSet& instructions, int64_t rows, int threads);
  /// What lies between takes of a thread's cache.
  static size_t BytesBetween(const std::vector<Convolution>& convolutions, int64_t rows);

  [[nodiscard]] size_t pieces() const override { return pieces_.size(); }
  [[nodiscard]] size_t scratch_bytes() const override { return scratch_ * sizeof(float); }
  void Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const override;

 private:
  /// Some channels of a tensor, of which as many rows are kept as are read at a time. Numbers are elements.
  struct View {
    int64_t offset;  ///< of the first pixel, in scratch memory or in the image
    int64_t pixel;   ///< from pixel to pixel
    int64_t row;
    int64_t rows_kept;

    [[nodiscard]] int64_t At(int64_t index) const { return offset + index % rows_kept * row; }
    /// Rows from this one on that lie side by side.
    [[nodiscard]] int64_t RowsFrom(int64_t index) const { return rows_kept - index % rows_kept; }
  };
  /// Channels of a result that are computed together.
  struct Panel {
    int64_t first, count;
    int64_t weights;  ///< where they begin
    View data, results;
    std::vector<size_t> kernels;  ///< of a product, by number of pixels
  };
  struct Layer {
    FusedKind kind;
    Convolution convolution;
    BoundTail tail;
    std::optional<BoundTail::InRegisters> in_registers;  ///< set where a loop of ours does the tail as well
    const float* weights = nullptr;
    std::vector<Panel> panels;
  };
  /// What one piece does in one image.
  struct Part {
    int64_t image;
    std::vector<RowStep> steps;
  };
  struct Memory {
    std::span<const void* const> inputs;
    const float* data;     // of the image
    float* result;         // of all images
    int64_t image_result;  // where the image begins there
    float* scratch;
  };

  void SetPieces(int64_t rows, int threads);
  void SetLayers(const InstructionSet& instructions);
  [[nodiscard]] std::vector<int64_t> RowsKeptByAll() const;
  void PackWeights(Layer& layer, const float* weights);
  Status MakeKernels();
  Status MakeTiles(Layer& layer, int64_t pixels);

  /// Then results go to a tile first.
  [[nodiscard]] static bool HasTailOnTiles(const Layer& layer) { return !layer.tail.IsEmpty() && !layer.in_registers; }
  [[nodiscard]] bool IsLast(const Layer& layer) const { return &layer == &layers_.back(); }
  void RunStep(const RowStep& step, const Memory& memory) const;
  /// Rows from `row` to before `last` that one product takes together.
  static int64_t RowsTogether(const Layer& layer, const Panel& panel, int64_t row, int64_t last);
  void Multiply(const Layer& layer, const Panel& panel, const RowSpan& rows, const Memory& memory) const;
  void MultiplyInRegisters(const Layer& layer, const Panel& panel, const RowSpan& rows, const Memory& memory) const;
  static DepthwiseRow BeginRow(const Layer& layer, const Panel& panel, const Memory& memory);
  void Convolve(const Layer& layer, const Panel& panel, const RowSpan& rows, const Memory& memory) const;

  std::vector<RowWindow> windows_;  // by layer
  std::vector<Layer> layers_;
  std::vector<std::vector<Part>> pieces_;
  std::vector<std::vector<std::pair<int64_t, int64_t>>> tiles_;  // by number of pixels
  std::vector<MicroKernel> kernels_;
  DepthwiseLoop depthwise_ = nullptr;
  PixelProductLoop product_ = nullptr;
  Operands operands_;
  Source data_;
  size_t tails_ = 0;    // where their scratch memory begins
  size_t slot_ = 0;     // elements of a tile there
  size_t scratch_ = 0;  // elements of a piece
};

}  // namespace collage::xsmm
