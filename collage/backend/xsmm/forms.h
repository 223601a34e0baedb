#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/backend/xsmm/micro_kernel.h"
#include "collage/backend/xsmm/program.h"
#include "collage/backend/xsmm/tail.h"
#include "collage/backend/xsmm/tiling.h"
#include "collage/op/volume.h"
#include "collage/tensor/layout.h"

namespace collage::xsmm {

/// A convolution with its tail, whose result only the next convolution of a chain reads.
struct Stage {
  const OpSequence::Step* base = nullptr;
  Tail tail;
};

/// Weights of a product that are integers of 8 bits already, as saved programs keep them: indices of the sequence's values.
struct IntegerWeights {
  size_t integers;
  size_t scales;  ///< one for each channel of the result
};

/// A function as this backend sees it: a product or convolution, then a tail. Convolutions may come before.
struct Chain {
  const OpSequence* sequence = nullptr;
  const OpSequence::Step* base = nullptr;
  Tail tail;
  std::vector<Stage> before = {};
  std::optional<IntegerWeights> weights = {};
  bool may_round_weights = false;  ///< to integers of 8 bits

  /// The left operand of the product, or the data of the first convolution.
  [[nodiscard]] size_t Data() const { return (before.empty() ? base : before.front().base)->inputs[0]; }
  [[nodiscard]] const TensorType& TypeOf(size_t value) const { return sequence->values[value].type; }
  [[nodiscard]] const Shape& ShapeOf(size_t value) const { return sequence->values[value].type.shape; }
  [[nodiscard]] bool IsConstant(size_t value) const { return sequence->values[value].constant.has_value(); }
  [[nodiscard]] const Shape& ResultShape() const { return ShapeOf(base->outputs[0]); }
};

/// Errors on what is not such a chain of float32 tensors; `sequence` must outlive the result.
Result<Chain> ParseChain(const OpSequence& sequence);

/// One way to run a chain.
struct Form {
  std::string name;      ///< of the variant
  Layout data;           ///< of the first operand
  Layout result;         ///< of the result, and of operands of the tail that have its shape
  TuningParameter size;  ///< how large the parts are that the work is cut into
  std::function<Result<std::shared_ptr<const Program>>(const Chain&, const Form&, int64_t size, int threads)> make;
  bool rounds_weights = false;  ///< to integers of 8 bits
};

/// A form that is a product in tiles of at most `tile_rows` rows, or of others: `tile` says how it is cut then.
Form ProductForm(std::string name, Layout data, Layout result, int64_t tile_rows, std::function<Tiling(int64_t tile_rows)> tile);

/// The same where weights come from beyond the second-level cache (Tiling::fetched_depth), for what `tile` cuts into tiles of at most so
/// many rows. Nothing where there is too little of them, or so many rows pass by them that it gains nothing.
std::optional<Form> FetchedForm(std::string name, Layout data, Layout result, std::function<Tiling(int64_t tile_rows)> tile);

/// nn.conv3d, or nn.conv2d as one of volumes that are one plane deep.
struct SpatialConvolution : VolumeConvolution {
  bool is_volume = false;

  /// Channels last, and in blocks.
  [[nodiscard]] std::string LastTag() const { return is_volume ? "acdeb" : "acdb"; }
  [[nodiscard]] std::string BlockedTag(int64_t block) const { return (is_volume ? "aBcde" : "aBcd") + std::to_string(block) + "b"; }
};

/// Of a window, side by side along one dimension.
struct TapRange {
  int64_t first, count;
  friend bool operator==(const TapRange&, const TapRange&) = default;
};
/// Those that meet data at a position of the result.
TapRange TapsAt(const VolumeConvolution& convolution, size_t dimension, int64_t position);

/// The ways to run a chain, one at least; the error says why no tiling fits it.
Result<std::vector<Form>> Forms(const Chain& chain, const InstructionSet& instructions);

// By family.
Result<std::vector<Form>> ProductForms(const Chain& chain, const InstructionSet& instructions);
Result<std::vector<Form>> ConvolutionForms(const Chain& chain, const InstructionSet& instructions);
/// Of any convolution in one group, as a sum of products over the taps of its window.
Result<std::vector<Form>> DirectForms(const Chain& chain, const SpatialConvolution& convolution, const InstructionSet& instructions);
/// Of a chain of several convolutions.
Result<std::vector<Form>> FusedForms(const Chain& chain, const InstructionSet& instructions);

/// Channels last or blocked, as `tag` says. Plain where that is the same order anyway, so that no conversion is charged.
Layout LayoutOfImage(const std::string& tag, int64_t channels, int64_t pixels);

/// Rows and panels of one matrix product, or of each of a batch: channels along the columns.
std::vector<Tiling::Rows> CutRows(int64_t rows, int64_t tile_rows, int64_t row_stride, int64_t result_stride);

/// The order in which less is read again from beyond the second-level cache, of so many elements of either operand.
Tiling::Order BetterOrder(int64_t row_elements, int64_t panel_elements);
/// The same of a tiling whose rows are all of one kind and share no elements.
Tiling::Order BetterOrder(const Tiling& tiling);

}  // namespace collage::xsmm
