#pragma once

#include <functional>
#include <optional>

#include "collage/ir/expr.h"
#include "collage/op/quantised_weights.h"
#include "collage/support/result.h"

namespace collage {

/// The constant weights of a call of `op` as integers, by channels along dimension `axis`; nothing to leave them as they are.
using WeightQuantiser = std::function<Result<std::optional<QuantisedWeights>>(const OpDef& op, const Tensor& weights, size_t axis)>;

/// `before:` nn.dense(%x, meta[relay.Constant][0])
/// `after:`  nn.dense(%x, qnn.dequantize(integers, scales, zeros, axis=0))
/// for the constant weights of float32 of dense layers, products of matrices and 2-D convolutions. Errors are the quantiser's.
Result<Expr> WithQuantisedWeights(const Function& function, const WeightQuantiser& quantise);

/// The same with the weights of dense layers and products of matrices rounded (Round), as a permit of kInt8 means it (tensor/precision.h).
/// What is such integers already stays so.
Result<Expr> WithRoundedWeights(const Function& function);

/// Whether there are such weights, rounded already or not.
bool HasRoundableWeights(const Function& function);

/// Along which dimension of a matrix of weights the channels of the result lie, for a dense layer or product of matrices.
size_t ChannelsOfWeights(const OpDef& op, const Attributes& attributes);

}  // namespace collage
