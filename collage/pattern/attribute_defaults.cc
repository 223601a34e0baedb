#include "collage/pattern/attribute_defaults.h"

#include <algorithm>
#include <map>
#include <optional>

namespace collage {
namespace {

using Ints = std::vector<int64_t>;

const std::map<std::pair<std::string, std::string>, AttributeValue>& Defaults() {
  static const std::map<std::pair<std::string, std::string>, AttributeValue> defaults = {{{"nn.conv2d", "strides"}, Ints{1, 1}},
                                                                                         {{"nn.conv2d", "padding"}, Ints{0, 0, 0, 0}},
                                                                                         {{"nn.conv2d", "dilation"}, Ints{1, 1}},
                                                                                         {{"nn.conv2d", "groups"}, 1},
                                                                                         {{"nn.conv2d", "data_layout"}, "NCHW"},
                                                                                         {{"nn.conv2d", "kernel_layout"}, "OIHW"},
                                                                                         {{"nn.conv2d", "out_dtype"}, ""},
                                                                                         {{"nn.max_pool2d", "strides"}, Ints{1, 1}},
                                                                                         {{"nn.max_pool2d", "padding"}, Ints{0, 0, 0, 0}},
                                                                                         {{"nn.max_pool2d", "dilation"}, Ints{1, 1}},
                                                                                         {{"nn.max_pool2d", "ceil_mode"}, false},
                                                                                         {{"nn.batch_norm", "axis"}, 1},
                                                                                         {{"nn.batch_norm", "epsilon"}, 1e-5},
                                                                                         {{"nn.batch_norm", "center"}, true},
                                                                                         {{"nn.batch_norm", "scale"}, true},
                                                                                         {{"nn.bias_add", "axis"}, 1},
                                                                                         {{"nn.softmax", "axis"}, -1},
                                                                                         {{"nn.leaky_relu", "alpha"}, 0.01},
                                                                                         {{"concatenate", "axis"}, 0},
                                                                                         {{"split", "axis"}, 0},
                                                                                         {{"nn.pad", "pad_mode"}, "constant"},
                                                                                         {{"sum", "keepdims"}, false},
                                                                                         {{"sum", "exclude"}, false},
                                                                                         {{"min", "keepdims"}, false},
                                                                                         {{"min", "exclude"}, false},
                                                                                         {{"expand_dims", "num_newaxis"}, 1},
                                                                                         {{"gather_nd", "batch_dims"}, 0}};
  return defaults;
}

std::optional<double> AsNumber(const AttributeValue& value) {
  if (value.AsInt()) return static_cast<double>(*value.AsInt());
  if (value.AsDouble()) return *value.AsDouble();
  if (value.AsBool()) return *value.AsBool() ? 1.0 : 0.0;
  return {};
}

}  // namespace

AttributeValue AttributeOrDefault(const Expr& expr, const std::string& name) {
  const Call* call = expr->As<Call>();
  const Function* function = expr->As<Function>();
  if (!call && !function) return {};
  if (const AttributeValue* value = (call ? call->attributes : function->attributes).Find(name)) return *value;
  const OpDef* op = CalledOp(expr);
  if (!op) return {};
  if (name == "kind") return std::string(Name(op->kind));
  const auto at = Defaults().find({op->name, name});
  return at == Defaults().end() ? AttributeValue() : at->second;
}

bool SameValue(const AttributeValue& a, const AttributeValue& b) {
  if (a == b) return true;
  const std::optional<double> x = AsNumber(a);
  const std::optional<double> y = AsNumber(b);
  if (x && y) return *x == *y || (a.AsDouble() && b.AsDouble() && static_cast<float>(*x) == static_cast<float>(*y));
  const AttributeValue::List* left = a.AsList();
  const AttributeValue::List* right = b.AsList();
  if (left && right) return std::equal(left->begin(), left->end(), right->begin(), right->end(), SameValue);
  if (left && y) return left->size() == 1 && SameValue(left->front(), b);
  if (right && x) return right->size() == 1 && SameValue(a, right->front());
  return false;
}

}  // namespace collage
