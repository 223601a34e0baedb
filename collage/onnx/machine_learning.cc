// Operators of the domain ai.onnx.ml that models of other domains use around a network.

#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"
#include "collage/tensor/narrow.h"
#include "collage/tensor/strings.h"

namespace collage::onnx_io {
namespace {

Tensor Vector(const std::vector<int64_t>& values) {
  return Tensor::FromVector(TensorType{{static_cast<int64_t>(values.size())}, DType::kInt64}, values);
}
Tensor Vector(const std::vector<float>& values) {
  return Tensor::FromVector(TensorType{{static_cast<int64_t>(values.size())}, DType::kFloat32}, values);
}
Tensor Vector(const std::vector<std::string>& values) { return StringTensor({static_cast<int64_t>(values.size())}, values); }

/// "keys_tensor", or the one of "keys_int64s", "keys_floats" and "keys_strings" that is given; so for "values".
Result<Tensor> ListAttribute(const NodeReader& node, const std::string& name) {
  if (node.HasAttribute(name + "_tensor")) {
    const Tensor tensor = COLLAGE_TRY(node.TensorAttribute(name + "_tensor"));
    return tensor.Reshaped({tensor.ElementCount()});
  }
  if (node.HasAttribute(name + "_int64s")) return Vector(COLLAGE_TRY(node.Ints(name + "_int64s", {})));
  if (node.HasAttribute(name + "_floats")) return Vector(COLLAGE_TRY(node.Floats(name + "_floats", {})));
  if (node.HasAttribute(name + "_strings")) return Vector(COLLAGE_TRY(node.Strings(name + "_strings", {})));
  return Fail("has none of the attributes '" + name + "_tensor', '" + name + "_int64s', '" + name + "_floats' and '" + name + "_strings'");
}

/// What stands for a key that is not listed.
Result<Tensor> DefaultValue(const NodeReader& node, DType dtype) {
  if (node.HasAttribute("default_tensor")) {
    const Tensor value = COLLAGE_TRY(node.TensorAttribute("default_tensor"));
    if (value.ElementCount() == 1 && value.dtype() == dtype) return value.Reshaped({});
    return Fail("attribute 'default_tensor' is " + ToString(value.type()) + ", expected one " + std::string(Name(dtype)));
  }
  if (dtype == DType::kString) return StringTensor({}, {COLLAGE_TRY(node.String("default_string", "_Unused"))});
  if (IsFloatingPoint(dtype)) return ScalarOf(COLLAGE_TRY(node.Float("default_float", -0.0F)), dtype);
  Tensor value(TensorType{{}, dtype});
  if (dtype == DType::kInt64) {
    *value.MutableData<int64_t>() = COLLAGE_TRY(node.Int64("default_int64", -1));
    return value;
  }
  return ScalarOf(static_cast<double>(COLLAGE_TRY(node.Int64("default_int64", -1))), dtype);
}

/// values[i] for the first key i that an element equals, else the default value; NaN equals NaN.
Result<std::vector<Expr>> ReadLabelEncoder(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const Tensor keys = COLLAGE_TRY(ListAttribute(node, "keys"));
  const Tensor values = COLLAGE_TRY(ListAttribute(node, "values"));
  if (keys.ElementCount() != values.ElementCount() || keys.ElementCount() == 0) {
    return Fail("has " + std::to_string(keys.ElementCount()) + " keys and " + std::to_string(values.ElementCount()) +
                " values; as many of both are right, and at least one");
  }
  if (keys.dtype() != type.dtype) return Fail("data is " + ToString(type) + ", but the keys are " + ToString(keys.type()));
  Formula formula(node, DType::kInt64);
  Shape with_keys = type.shape;
  with_keys.push_back(1);
  const Expr element = formula.Reshape(data, with_keys);
  const Expr listed = MakeConstant(keys);
  Expr equal = formula.Call("equal", element, listed);
  if (IsFloatingPoint(type.dtype))
    equal = formula.Call("logical_or", equal, formula.Call("logical_and", formula.Call("isnan", element), formula.Call("isnan", listed)));
  const Expr numbers = formula.Cast(equal, DType::kInt64);
  const auto axis = static_cast<int64_t>(type.shape.size());
  const Expr place = formula.Reduce("argmax", numbers, {axis}, false);
  const Expr found = formula.Cast(formula.Reduce("max", numbers, {axis}, false), DType::kBool);
  const Expr value = formula.Apply("take", {MakeConstant(values), place}, {{"axis", 0}});
  return formula.Done(formula.Call("where", found, value, MakeConstant(COLLAGE_TRY(DefaultValue(node, values.dtype())))));
}

/// Elements of the last axis.
Result<std::vector<Expr>> ReadArrayFeatureExtractor(NodeReader& node) {
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  const TensorType places = COLLAGE_TRY(node.InputType(1));
  Formula formula(node, type.dtype);
  const Shape shape = type.shape.empty() ? Shape{1} : type.shape;
  const Expr data = formula.Reshape(COLLAGE_TRY(node.Input(0)), shape);
  const Expr index = formula.Reshape(COLLAGE_TRY(node.Input(1)), {places.ElementCount()});
  const Expr taken = formula.Apply("take", {data, index}, {{"axis", static_cast<int64_t>(shape.size()) - 1}});
  return formula.Done(shape.size() == 1 ? formula.Reshape(taken, {1, places.ElementCount()}) : taken);
}

Result<std::vector<Expr>> ReadBinarizer(NodeReader& node) {
  const DType dtype = COLLAGE_TRY(node.InputType(0)).dtype;
  Formula formula(node, dtype);
  const Expr above = formula.Call("greater", COLLAGE_TRY(node.Input(0)), static_cast<double>(COLLAGE_TRY(node.Float("threshold", 0))));
  return formula.Done(formula.Cast(above, dtype));
}

/// A sequence of maps from classes to numbers is the matrix of these numbers, a column for each class in the order of the attribute: as
/// sequences are their tensors.
Result<std::vector<Expr>> ReadZipMap(NodeReader& node) {
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  const char* name = node.HasAttribute("classlabels_strings") ? "classlabels_strings" : "classlabels_int64s";
  const auto classes = static_cast<int64_t>(node.HasAttribute("classlabels_strings") ? COLLAGE_TRY(node.Strings(name, {})).size()
                                                                                     : COLLAGE_TRY(node.Ints(name, {})).size());
  if (type.shape.empty() || type.shape.size() > 2) return Fail("data is " + ToString(type) + ", expected one or two dimensions");
  if (type.shape.back() != classes)
    return Fail("attribute '" + std::string(name) + "' has " + std::to_string(classes) + " classes for data " + ToString(type));
  Formula formula(node, type.dtype);
  return formula.Done(formula.Reshape(COLLAGE_TRY(node.Input(0)), {type.ElementCount() / std::max<int64_t>(1, classes), classes}));
}

}  // namespace

OperatorFamily MachineLearningFamily() {
  static constexpr ReadRow kRead[] = {{"ai.onnx.ml.LabelEncoder", ReadLabelEncoder},
                                      {"ai.onnx.ml.ArrayFeatureExtractor", ReadArrayFeatureExtractor},
                                      {"ai.onnx.ml.Binarizer", ReadBinarizer},
                                      {"ai.onnx.ml.ZipMap", ReadZipMap}};
  return {kRead, {}};
}

}  // namespace collage::onnx_io
