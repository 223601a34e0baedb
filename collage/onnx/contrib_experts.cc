#include <limits>

#include "collage/onnx/curves.h"
#include "collage/onnx/packed_bits.h"
#include "collage/onnx/rows.h"
#include "collage/op/nbits_product.h"

// Mixtures of experts of com.microsoft. Where there are fewer choices of experts than experts, each choice takes the weights of its
// expert; otherwise every expert sees every token, and those that a token did not choose count zero.

namespace collage::onnx_io {
namespace {

/// The places of one layer's inputs; those that the operator lacks lie beyond its inputs.
struct LayerInputs {
  const char* name;
  size_t weights;
  size_t bias;
  size_t scales;
  size_t zeros;
  const char* bits;
};

/// How the weights of a layer are stored, (experts, columns, bytes or elements of a column).
struct LayerForm {
  int64_t columns = 0;
  int64_t depth = 0;
  int64_t bits = 0;   ///< 0: they are elements
  int64_t block = 0;  ///< elements that share a scale
};

/// What an expert computes: its index, a scalar, the tokens that it sees, (rows, hidden), and how much its result counts, (rows, 1).
struct Share {
  Expr expert;
  Expr tokens;
  Expr weight;
};

class Experts {
 public:
  Experts(NodeReader& node, bool quantized, DType dtype) : node_(node), quantized_(quantized), formula_(node, dtype) {
    const size_t none = std::numeric_limits<size_t>::max();
    if (quantized) {
      layers_ = {LayerInputs{"fc1", 2, 4, 3, 11, "fc1_expert_weight_bits"}, LayerInputs{"fc2", 5, 7, 6, 12, "fc2_expert_weight_bits"},
                 LayerInputs{"fc3", 8, 10, 9, 13, "fc3_expert_weight_bits"}};
    } else {
      layers_ = {LayerInputs{"fc1", 2, 3, none, none, ""}, LayerInputs{"fc2", 4, 5, none, none, ""},
                 LayerInputs{"fc3", 6, 7, none, none, ""}};
    }
  }

  Result<std::vector<Expr>> Read() {
    COLLAGE_TRY_STATUS(ReadShapes());
    COLLAGE_TRY_STATUS(ReadActivation());
    COLLAGE_TRY_STATUS(ReadForms());
    COLLAGE_TRY_STATUS(Route());
    const Expr data = formula_.Reshape(COLLAGE_TRY(node_.Input(0)), {tokens_, hidden_});
    const Expr sum = tokens_ * chosen_ < experts_ ? COLLAGE_TRY(OfChoices(data)) : COLLAGE_TRY(OfAllExperts(data));
    return formula_.Done(formula_.Reshape(sum, COLLAGE_TRY(node_.InputType(0)).shape));
  }

 private:
  Status ReadShapes() {
    COLLAGE_TRY_STATUS(node_.RequireInt("use_sparse_mixer", 0, 0));
    const Shape data = COLLAGE_TRY(node_.InputType(0)).shape;
    if (data.size() != 2 && data.size() != 3)
      return Fail("input 0 has shape " + ToString(data) + "; (tokens, hidden) or (batch, length, hidden) is right");
    hidden_ = data.back();
    tokens_ = data.size() == 2 ? data[0] : data[0] * data[1];
    const Shape router = COLLAGE_TRY(node_.InputType(1)).shape;
    if (router.size() != 2 || router[0] != tokens_)
      return Fail("input 1 (router_probs) has shape " + ToString(router) + "; (" + std::to_string(tokens_) + ", experts) is right");
    experts_ = router[1];
    chosen_ = COLLAGE_TRY(node_.Int("k", 1));
    if (chosen_ < 1 || chosen_ > experts_)
      return Fail("attribute 'k' is " + std::to_string(chosen_) + "; 1 to " + std::to_string(experts_) + " experts is right");
    return {};
  }

  Status ReadActivation() {
    activation_ = COLLAGE_TRY(node_.String("activation_type", "relu"));
    const bool known = activation_ == "relu" || activation_ == "gelu" || activation_ == "silu" || activation_ == "identity";
    if (activation_ != "swiglu" && !known)
      return Fail("attribute 'activation_type' is '" + activation_ + "'; relu, gelu, silu, swiglu or identity is right");
    fusion_ = COLLAGE_TRY(node_.Int("swiglu_fusion", 0));
    has_gate_ = node_.HasInput(layers_[2].weights);
    if (activation_ == "swiglu") {
      if (fusion_ < 0 || fusion_ > 2) return Fail("attribute 'swiglu_fusion' is " + std::to_string(fusion_) + "; 0, 1 or 2 is right");
      if (has_gate_ != (fusion_ == 0))
        return Fail("attribute 'swiglu_fusion' is " + std::to_string(fusion_) + ", with which input " + std::to_string(layers_[2].weights) +
                    " (fc3_experts_weights) must be " + (fusion_ == 0 ? "given" : "absent"));
    }
    return {};
  }

  Status ReadForms() {
    forms_.resize(3);
    const int64_t parts = activation_ == "swiglu" && fusion_ != 0 ? 2 : 1;
    forms_[0] = COLLAGE_TRY(ReadForm(layers_[0], hidden_));
    if (forms_[0].columns % parts != 0)
      return Fail("fc1 has " + std::to_string(forms_[0].columns) + " columns, of which SwiGLU takes pairs");
    const int64_t inner = forms_[0].columns / parts;
    forms_[1] = COLLAGE_TRY(ReadForm(layers_[1], inner));
    if (forms_[1].columns != hidden_)
      return Fail("fc2 has " + std::to_string(forms_[1].columns) + " columns; those of the data, " + std::to_string(hidden_) +
                  ", are right");
    if (!has_gate_) return {};
    forms_[2] = COLLAGE_TRY(ReadForm(layers_[2], hidden_));
    if (forms_[2].columns != inner)
      return Fail("fc3 has " + std::to_string(forms_[2].columns) + " columns; those of fc1, " + std::to_string(inner) + ", are right");
    return {};
  }

  Result<LayerForm> ReadForm(const LayerInputs& layer, int64_t depth) {
    const Shape shape = COLLAGE_TRY(node_.InputType(layer.weights)).shape;
    LayerForm form{.columns = shape.size() == 3 ? shape[1] : 0, .depth = depth, .block = depth};
    if (quantized_) {
      form.bits = COLLAGE_TRY(node_.Int(layer.bits, COLLAGE_TRY(node_.Int("expert_weight_bits", 4))));
      if (form.bits != 2 && form.bits != 4 && form.bits != 8)
        return Fail(std::string(layer.name) + " has weights of " + std::to_string(form.bits) + " bits; 2, 4 or 8 is right");
      const int64_t block = COLLAGE_TRY(node_.Int("block_size", 0));
      if (block > 0) form.block = block;
      if (depth % form.block != 0 || form.block * form.bits % 8 != 0)
        return Fail(std::string(layer.name) + " has columns of " + std::to_string(depth) + " elements, which blocks of " +
                    std::to_string(form.block) + " do not fill");
    }
    const int64_t width = quantized_ ? depth * form.bits / 8 : depth;
    if (shape.size() != 3 || shape[0] != experts_ || shape[2] != width)
      return Fail("input " + std::to_string(layer.weights) + " (weights of " + layer.name + ") has shape " + ToString(shape) + "; (" +
                  std::to_string(experts_) + ", columns, " + std::to_string(width) + ") is right");
    return form;
  }

  /// Which experts a token chooses, and how much each counts: (tokens, k).
  Status Route() {
    const Expr router = COLLAGE_TRY(node_.Input(1));
    const Expr best = formula_.Apply("topk", {router}, {{"k", chosen_}, {"axis", -1}});
    choices_ = formula_.Project(best, 1);
    const bool normalized = COLLAGE_TRY(node_.Int("normalize_routing_weights", 0)) != 0;
    if (quantized_ && node_.HasInput(14)) {
      weights_ = formula_.Apply("gather", {COLLAGE_TRY(node_.Input(14)), choices_}, {{"axis", 1}});
      if (normalized) weights_ = formula_.Call("divide", weights_, formula_.Reduce("sum", weights_, {1}, true));
    } else if (normalized || quantized_) {
      // ONNX Runtime normalises those of quantized experts whatever the attribute says.
      weights_ = formula_.Apply("nn.softmax", {formula_.Project(best, 0)}, {{"axis", -1}});
    } else {
      weights_ = formula_.Apply("gather", {formula_.Apply("nn.softmax", {router}, {{"axis", -1}}), choices_}, {{"axis", 1}});
    }
    COLLAGE_TRY(formula_.Done(weights_));
    return {};
  }

  Result<Expr> OfChoices(const Expr& data) {
    std::vector<Expr> rows;
    for (int64_t token = 0; token < tokens_; ++token) {
      Expr sum;
      for (int64_t choice = 0; choice < chosen_; ++choice) {
        const auto element = [&](const Expr& of, const Shape& shape) {
          return formula_.Reshape(formula_.Slice(formula_.Slice(of, 0, token, token + 1), 1, choice, choice + 1), shape);
        };
        const Share share{element(choices_, {}), formula_.Slice(data, 0, token, token + 1), element(weights_, {1, 1})};
        COLLAGE_TRY_STATUS(Add(sum, share));
      }
      rows.push_back(sum);
    }
    return formula_.Concatenate(rows, 0);
  }

  Result<Expr> OfAllExperts(const Expr& data) {
    const Expr none = formula_.Zeros({tokens_, experts_}, formula_.dtype());
    const Expr weights = formula_.Apply("scatter_elements", {none, choices_, weights_}, {{"axis", 1}});
    Expr sum;
    for (int64_t expert = 0; expert < experts_; ++expert) {
      const Expr index = COLLAGE_TRY(NodeReader::Scalar(static_cast<double>(expert), DType::kInt64));
      COLLAGE_TRY_STATUS(Add(sum, {index, data, formula_.Slice(weights, 1, expert, expert + 1)}));
    }
    return sum;
  }

  Status Add(Expr& sum, const Share& share) {
    Expr inner = COLLAGE_TRY(Layer(0, share.expert, share.tokens));
    if (activation_ == "swiglu") {
      inner = COLLAGE_TRY(SwiGlu(inner, share));
    } else {
      inner = Activate(inner);
      if (has_gate_) inner = formula_.Call("multiply", inner, COLLAGE_TRY(Layer(2, share.expert, share.tokens)));
    }
    const Expr result = formula_.Call("multiply", COLLAGE_TRY(Layer(1, share.expert, inner)), share.weight);
    sum = sum == nullptr ? result : formula_.Call("add", sum, result);
    COLLAGE_TRY(formula_.Done(sum));
    return {};
  }

  Expr Activate(const Expr& x) {
    if (activation_ == "relu") return formula_.Call("nn.relu", x);
    if (activation_ == "gelu") return FastGelu(formula_, x);
    if (activation_ == "silu") return Silu(formula_, x);
    return x;
  }

  /// A gate and what it lets through: pairs of columns, halves, or results of two layers.
  Result<Expr> SwiGlu(const Expr& first, const Share& share) {
    Expr gate = first;
    Expr linear;
    if (fusion_ == 0) {
      linear = COLLAGE_TRY(Layer(2, share.expert, share.tokens));
    } else {
      const int64_t inner = forms_[1].depth;
      const int64_t rows = formula_.ok() ? Formula::ShapeOf(first)[0] : 0;
      const int64_t axis = fusion_ == 1 ? 2 : 1;
      const Expr both = formula_.Reshape(first, fusion_ == 1 ? Shape{rows, inner, 2} : Shape{rows, 2, inner});
      gate = formula_.Reshape(formula_.Slice(both, axis, 0, 1), {rows, inner});
      linear = formula_.Reshape(formula_.Slice(both, axis, 1, 2), {rows, inner});
    }
    if (node_.HasAttribute("swiglu_limit")) {
      const double limit = COLLAGE_TRY(node_.Float("swiglu_limit", 0));
      gate = formula_.Call("minimum", gate, limit);
      linear = formula_.Clip(linear, -limit, limit);
    }
    const Expr scaled = formula_.Call("multiply", gate, COLLAGE_TRY(node_.Float("activation_alpha", 1)));
    const Expr swish = formula_.Call("multiply", gate, formula_.Call("sigmoid", scaled));
    return formula_.Call("multiply", swish, formula_.Call("add", linear, COLLAGE_TRY(node_.Float("activation_beta", 0))));
  }

  Expr OfExpert(const Expr& all, const Expr& expert) { return formula_.Apply("take", {all, expert}, {{"axis", 0}}); }

  Result<Expr> Layer(size_t which, const Expr& expert, const Expr& data) {
    const LayerInputs& layer = layers_[which];
    const LayerForm& form = forms_[which];
    const Expr weights = OfExpert(COLLAGE_TRY(node_.Input(layer.weights)), expert);
    Expr result =
        quantized_ ? COLLAGE_TRY(QuantizedProduct(layer, form, expert, data, weights)) : formula_.Apply("nn.dense", {data, weights});
    if (node_.HasInput(layer.bias)) result = formula_.Call("add", result, OfExpert(COLLAGE_TRY(node_.Input(layer.bias)), expert));
    return result;
  }

  Result<Expr> QuantizedProduct(const LayerInputs& layer, const LayerForm& form, const Expr& expert, const Expr& data,
                                const Expr& weights) {
    NBitsProduct product{.columns = form.columns, .depth = form.depth, .bits = form.bits, .block = form.block};
    product.blocks = form.depth / form.block;
    const Expr packed = formula_.Reshape(weights, {form.columns, product.blocks, form.block * form.bits / 8});
    const Expr scales = formula_.Reshape(OfExpert(COLLAGE_TRY(node_.Input(layer.scales)), expert), {form.columns, product.blocks});
    Expr zeros = MakeConstant(product.DefaultZeros());
    if (node_.HasInput(layer.zeros)) {
      const Expr given = OfExpert(COLLAGE_TRY(node_.Input(layer.zeros)), expert);
      COLLAGE_TRY(formula_.Done(given));
      // Of whole columns they lie side by side in bytes; the product wants a byte for each.
      const bool is_shared = Formula::ShapeOf(given).size() == 1;
      zeros = is_shared ? COLLAGE_TRY(OneByteEach(given, form)) : given;
    }
    return formula_.Apply("nn.matmul_nbits", {data, packed, scales, zeros}, {{"bits", form.bits}, {"block_size", form.block}});
  }

  Result<Expr> OneByteEach(const Expr& zeros, const LayerForm& form) {
    Formula bytes(node_, DType::kUInt8);
    const Expr row = bytes.Reshape(zeros, {1, Formula::ShapeOf(zeros)[0]});
    const Expr result = bytes.Reshape(COLLAGE_TRY(Unpacked(node_, bytes, row, form.bits, {1, form.columns})), {form.columns, 1});
    COLLAGE_TRY(bytes.Done(result));
    return result;
  }

  NodeReader& node_;
  bool quantized_;
  Formula formula_;
  std::vector<LayerInputs> layers_;
  std::vector<LayerForm> forms_;
  std::string activation_;
  int64_t fusion_ = 0;
  bool has_gate_ = false;
  Expr choices_;
  Expr weights_;
  int64_t tokens_ = 0;
  int64_t hidden_ = 0;
  int64_t experts_ = 0;
  int64_t chosen_ = 0;
};

Result<std::vector<Expr>> ReadMoE(NodeReader& node) { return Experts(node, false, COLLAGE_TRY(node.InputType(0)).dtype).Read(); }

Result<std::vector<Expr>> ReadQMoE(NodeReader& node) {
  const std::string type = COLLAGE_TRY(node.String("quant_type", "int"));
  if (type != "int") return Fail("attribute 'quant_type' is '" + type + "'; only 'int' is supported");
  const int64_t prepacked = COLLAGE_TRY(node.Int("weights_prepacked", -1));
  if (prepacked != -1 && prepacked != 0)
    return Fail("attribute 'weights_prepacked' is " + std::to_string(prepacked) +
                ": weights in the order of one device; -1 or 0 is supported");
  for (size_t i = 15; i < node.input_count(); ++i) {
    if (node.HasInput(i)) return Fail("input " + std::to_string(i) + " (a scale of other kinds than 'int') is not supported");
  }
  return Experts(node, true, COLLAGE_TRY(node.InputType(0)).dtype).Read();
}

}  // namespace

OperatorFamily ContribExpertsFamily() {
  static constexpr ReadRow kRead[] = {{"com.microsoft.MoE", ReadMoE}, {"com.microsoft.QMoE", ReadQMoE}};
  return {kRead, {}};
}

}  // namespace collage::onnx_io
