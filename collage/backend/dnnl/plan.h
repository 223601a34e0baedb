#pragma once

#include <dnnl.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collage/backend/dnnl/chain.h"
#include "collage/backend/dnnl/layer_normalization.h"
#include "collage/backend/dnnl/shuffle.h"
#include "collage/tensor/layout.h"

namespace collage::dnnl_backend {

/// A tensor of the function as an argument of the primitive. Constants are packed into `desc` once.
struct Argument {
  int id;        ///< DNNL_ARG_...
  size_t value;  ///< index into the sequence's values
  dnnl::memory::desc desc;
  Layout layout = {};                                    ///< of the port, for parameters and the result
  std::optional<dnnl::memory::desc> constant_desc = {};  ///< how a constant's bytes lie, where not row-major in `desc`'s extents
  std::function<Tensor(const Tensor&)> prepared = {};    ///< what of a constant is packed; as it is where empty
  bool is_made_signed = false;                           ///< a parameter of unsigned bytes that the library is given less 128
};

/// One way to run a function: a primitive that the library has agreed to make, not made yet.
struct Plan {
  std::string name;  ///< the variant's
  dnnl::primitive_desc_base primitive;
  std::vector<Argument> arguments;
  std::optional<size_t> accumulated = {};  ///< the tensor that a sum post-operation adds to
};

/// The weights and the bias of a chain's product, as integers where it is one of integers. `given_weight`: as Argument::constant_desc.
std::vector<Argument> ConstantArguments(const Chain& chain, const dnnl::memory::desc& weight, const dnnl::memory::desc& bias,
                                        std::optional<dnnl::memory::desc> given_weight = {});

/// The ways to run a function, without duplicates; empty when the library cannot. With `stored` bfloat16 those that the float32 ones have
/// no name of: sources and weights are bfloat16, sums float32, and the result either. Of these the library's reference loops are none.
std::vector<Plan> Plans(const OpSequence& sequence, DType stored = DType::kFloat32);

// By family.
std::vector<Plan> ConvolutionPlans(const Chain& chain);
std::vector<Plan> TransposedConvolutionPlans(const Chain& chain);
std::vector<Plan> DensePlans(const Chain& chain);
std::vector<Plan> MatmulPlans(const Chain& chain);
std::vector<Plan> PoolingPlans(const Chain& chain);
std::vector<Plan> PointwisePlans(const Chain& chain);
std::vector<Plan> ConcatenationPlans(const Chain& chain);
std::vector<Plan> LocalResponseNormalizationPlans(const Chain& chain);
std::vector<Plan> SoftmaxPlans(const Chain& chain);
std::vector<Plan> LayerNormalizationPlans(const OpSequence& sequence, const LayerNormalization& found, DType stored);
std::vector<Plan> ShufflePlans(const OpSequence& sequence, const Shuffle& shuffle, DType stored);

}  // namespace collage::dnnl_backend
