#pragma once

#include <dnnl.hpp>
#include <optional>
#include <span>
#include <vector>

#include "collage/backend/dnnl/quantised.h"
#include "collage/ir/op_sequence.h"

namespace collage::dnnl_backend {

/// A pointwise step that the library runs on a primitive's result before it is stored.
struct PostOp {
  dnnl::algorithm algorithm;
  float alpha = 0;
  float beta = 0;
  std::optional<size_t> operand;  ///< the other tensor of a binary step
};

/// A function as the library sees it: one operator (or none), then a bias, then pointwise steps, each on the one before.
struct Chain {
  const OpSequence* sequence = nullptr;
  const OpSequence::Step* base = nullptr;  ///< null when the chain is pointwise from the start
  size_t input = 0;                        ///< the tensor that the first pointwise step reads, when there is no base
  size_t result = 0;
  std::optional<size_t> bias;  ///< a constant vector over the channels of the base's result
  std::vector<PostOp> post_ops;
  /// Steps in front of a product that reshape and transpose what it reads, and behind the chain, what it gives.
  std::span<const OpSequence::Step> views_behind;
  std::span<const OpSequence::Step> views_ahead;
  /// Set where the product's operands are integers; `sequence` is then what is computed of numbers between its ends.
  std::optional<QuantisedEnds> quantised = {};
  /// In which type numbers that are not integers are given to the library, weights too, and in which its result is stored: float32, or
  /// where the function permits that, bfloat16. A bias and operands of post-operations that are not as large as the result stay float32.
  DType stored = DType::kFloat32;
  DType stored_result = DType::kFloat32;

  /// What the library is given of the base's data, and where it stores the result.
  [[nodiscard]] size_t DataValue() const { return quantised ? quantised->data.value : base->inputs[0]; }
  [[nodiscard]] DType DataType() const { return quantised ? quantised->data.dtype : stored; }
  [[nodiscard]] DType WeightType() const { return quantised ? DType::kInt8 : stored; }
  /// Two matrices of integers, none of them constant.
  [[nodiscard]] bool HasTwoMatricesOfIntegers() const { return quantised && quantised->right; }
  /// Of weights as the function has them, where that is not what the library is given.
  [[nodiscard]] DType GivenWeightType() const { return quantised ? DType::kInt8 : DType::kFloat32; }
  [[nodiscard]] bool StoresIntegers() const { return quantised && quantised->result.dtype != DType::kFloat32; }
  [[nodiscard]] size_t ResultValue() const { return quantised ? quantised->result.value : result; }
  [[nodiscard]] DType ResultType() const { return quantised ? quantised->result.dtype : stored_result; }
  [[nodiscard]] const TensorType& TypeOf(size_t value) const { return sequence->values[value].type; }
  [[nodiscard]] const Shape& ShapeOf(size_t value) const { return sequence->values[value].type.shape; }
  [[nodiscard]] bool IsConstant(size_t value) const { return sequence->values[value].constant.has_value(); }
};

/// Errors on what is not such a chain of float32 tensors; `sequence` must outlive the result.
Result<Chain> ParseChain(const OpSequence& sequence);

/// True when `shape`, aligned at the last dimension with a tensor of `rank` dimensions, is one everywhere but at `axis`, where
/// it is `channels`.
bool IsChannelVector(const Shape& shape, size_t rank, size_t axis, int64_t channels);

}  // namespace collage::dnnl_backend
