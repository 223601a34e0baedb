#pragma once

// Geometry and activation functions of nn.rnn, nn.gru and nn.lstm, read once from types and attributes.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collage/ir/attributes.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// One recurrent layer. Data is [steps, batch, inputs], a state [directions, batch, hidden]; each direction has weights of its own.
struct Recurrence {
  int64_t steps;
  int64_t batch;
  int64_t inputs;
  int64_t hidden;
  int64_t directions;
  bool reverse_first;  ///< the first direction runs backwards (of two it is the second one that does)
};

using Activation = std::function<double(double)>;

/// An activation as its name and parameters say it.
struct ActivationChoice {
  std::string name;
  double alpha, beta;
};

/// `gates`: blocks of `hidden` rows in the weights. Checks every constraint on shapes; after a call has been made it cannot fail
/// on its arguments.
Result<Recurrence> ReadRecurrence(std::span<const TensorType> arguments, const Attributes& attributes, int64_t gates);

/// The attribute "activations", or `fallback`, for each direction in turn: "sigmoid", "tanh", "relu", "affine", "leakyrelu",
/// "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu", "softsign" or "softplus", with "activation_alpha" and "activation_beta".
Result<std::vector<ActivationChoice>> ReadActivationChoices(const Attributes& attributes, const std::vector<std::string>& fallback,
                                                            int64_t directions);
/// The same as functions.
Result<std::vector<Activation>> ReadActivations(const Attributes& attributes, const std::vector<std::string>& fallback, int64_t directions);

// Reference kernels, see OpDef::ReferenceKernel.
void ReferenceRnn(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs);
void ReferenceGru(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs);
void ReferenceLstm(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs);
void ReferenceQuantisedLstm(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs);

}  // namespace collage
