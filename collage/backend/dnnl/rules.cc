#include "collage/backend/dnnl/rules.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "collage/backend/dnnl/match_check.h"
#include "collage/backend/match_function.h"

namespace collage::dnnl_backend {
namespace {

using pattern::AnyTuple;
using pattern::CallOf;
using pattern::IsConstant;
using pattern::Or;
using pattern::Wildcard;

/// A pattern on its way to becoming a rule.
struct Form {
  std::string label;
  Pattern pattern;
  size_t operators;  ///< on the longest way, for the order of the table
};

Pattern In(int number) { return Wildcard().As(std::string(kOutside) + std::to_string(number)); }

Form Extend(const Form& form, const std::string& suffix, Pattern pattern, size_t operators) {
  return {form.label + (form.label.ends_with(".") ? "" : "_") + suffix, std::move(pattern), form.operators + operators};
}

// Exporters write GELU in these orders; its scalars are checked where the chain is recognised.
Pattern Gelu(const Pattern& x) {
  const Pattern scaled = Or({CallOf("divide", {x, IsConstant()}), CallOf("multiply", {x, IsConstant()})});
  const Pattern factor = CallOf("add", {CallOf("erf", {scaled}), IsConstant()});
  return Or({CallOf("multiply", {CallOf("multiply", {x, factor}), IsConstant()}),
             CallOf("multiply", {CallOf("multiply", {x, IsConstant()}), factor}),
             CallOf("multiply", {x, CallOf("multiply", {factor, IsConstant()})})});
}

Pattern HardSwish(const Pattern& x) {
  const Pattern factor = CallOf("clip", {CallOf("add", {x, IsConstant()})});
  const auto sixth = [](const Pattern& of) { return Or({CallOf("divide", {of, IsConstant()}), CallOf("multiply", {of, IsConstant()})}); };
  return Or({sixth(CallOf("multiply", {x, factor})), CallOf("multiply", {x, sixth(factor)})});
}

std::vector<Form> Activations(const Form& form) {
  const Pattern& x = form.pattern;
  std::vector<Form> forms;
  for (const char* op : {"nn.relu", "clip", "sigmoid", "tanh", "nn.leaky_relu"}) {
    const std::string name = op;
    forms.push_back(Extend(form, name.starts_with("nn.") ? name.substr(3) : name, CallOf(op, {x}), 1));
  }
  forms.push_back(Extend(form, "swish", CallOf("multiply", {x, CallOf("sigmoid", {x})}), 2));
  forms.push_back(Extend(form, "hard_swish", HardSwish(x), 4));
  forms.push_back(Extend(form, "gelu", Gelu(x), 5));
  return forms;
}

// Either side of an addition may be the one to fuse into; the matcher shows both.
std::vector<Form> Additions(const Form& form) { return {Extend(form, "add", CallOf("add", {form.pattern, In(8)}), 1)}; }

std::vector<Form> operator+(std::vector<Form> a, const std::vector<Form>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

bool HasConstantWeights(const Expr& call) {
  const std::vector<Expr>& args = call->As<Call>()->args;
  return args.size() == 2 && !args[0]->As<Constant>() && args[1]->As<Constant>();
}

// Pointwise operators that post-operations are made of, alone or several together: GELU, swish. Which of their chains the library runs
// is for the check to say.
bool IsPointwise(const std::string& op) {
  static const std::unordered_set<std::string_view> names = {"nn.bias_add", "add",     "subtract", "multiply", "divide",
                                                             "maximum",     "minimum", "power",    "nn.relu",  "nn.leaky_relu",
                                                             "clip",        "sigmoid", "tanh",     "erf"};
  return names.contains(op);
}

// An operator with constant weights and what follows it element by element, as far as the library goes: bias, activations, the other side
// of a residual connection, in any order.
PatternRule WithPostOps(const std::string& op) {
  FusionRule fusion;
  fusion.begins = [op](const Expr& call) { return CalledOp(call)->name == op && HasConstantWeights(call); };
  fusion.joins = [](const std::vector<Expr>& inside, const Expr& next) {
    return IsPointwise(CalledOp(next)->name) && next->type() == inside.front()->type();
  };
  return PatternRule::Growing("dnnl." + op.substr(3), std::move(fusion), CheckMatch);
}

// The same of integers: numbers are made of them in front of the product, and integers again behind what follows it.
PatternRule OfIntegers() {
  const auto makes_numbers = [](const Expr& call) {
    const std::string& op = CalledOp(call)->name;
    const bool gives_numbers = op == "qnn.dequantize" || (op == "cast" && call->type().AsTensor()->dtype == DType::kInt32);
    if (!gives_numbers) return false;
    const TensorType* data = call->As<Call>()->args[0]->type().AsTensor();
    return data && (data->dtype == DType::kInt8 || data->dtype == DType::kUInt8);
  };
  const auto is_product = [](const Expr& call) {
    static const std::unordered_set<std::string_view> names = {"nn.conv2d", "nn.dense", "nn.matmul"};
    return names.contains(CalledOp(call)->name) && HasConstantWeights(call);
  };
  FusionRule fusion;
  fusion.begins = makes_numbers;
  fusion.joins = [is_product](const std::vector<Expr>& inside, const Expr& next) {
    const auto product = std::find_if(inside.begin(), inside.end(), is_product);
    const std::string& op = CalledOp(next)->name;
    if (product == inside.end()) return is_product(next) || (op == "subtract" && CalledOp(inside.back())->name == "cast");
    const TensorType* type = next->type().AsTensor();
    const bool follows = op == "qnn.quantize" || op == "cast" || IsPointwise(op);
    return follows && CalledOp(inside.back())->name != "qnn.quantize" && type && type->shape == (*product)->type().AsTensor()->shape;
  };
  return PatternRule::Growing("dnnl.int8", std::move(fusion), CheckMatch);
}

Form Scaled(const Form& form) {
  const Pattern& p = form.pattern;
  return Extend(form, "scale", Or({CallOf("divide", {p, IsConstant()}), CallOf("multiply", {p, IsConstant()})}), 1);
}

// Products of attention whose matrices are both integers, dequantised or in 32 bits less their zero points; quantised again, or not.
std::vector<Form> OfTwoMatricesOfIntegers() {
  const auto numbers = [](int number) {
    const Pattern wide = CallOf("cast", {In(number)});
    return Or({CallOf("qnn.dequantize", {In(number), IsConstant(), IsConstant()}), CallOf("subtract", {wide, IsConstant()}), wide});
  };
  std::vector<Form> forms;
  for (const char* op : {"nn.matmul", "nn.batch_matmul"}) {
    const Form product{"dnnl.int8_" + std::string(op).substr(3), CallOf(op, {numbers(0), numbers(1)}), 3};
    const Form real = Extend(product, "real", CallOf("cast", {product.pattern}), 1);
    for (const Form& form : {product, Scaled(product), Scaled(real)}) {
      forms.push_back(form);
      forms.push_back(Extend(form, "quantize", CallOf("qnn.quantize", {form.pattern, IsConstant(), IsConstant()}), 1));
    }
  }
  return forms;
}

// Products of attention: heads are split off in front and merged behind, which strides do without moving an element.
std::vector<Form> OfHeads(const std::string& label, const char* op) {
  const auto heads = [](int number) {
    const Pattern x = In(number);
    return Or({CallOf("transpose", {CallOf("reshape", {x})}), CallOf("transpose", {x}), x});
  };
  const auto merged = [](const Form& form) { return Extend(form, "merge", CallOf("reshape", {CallOf("transpose", {form.pattern})}), 2); };
  const Form product{label + "_heads", CallOf(op, {heads(0), heads(1)}), 5};
  return {product, Scaled(product), merged(product), merged(Scaled(product))};
}

std::vector<Form> Products() {
  std::vector<Form> forms;
  for (const char* op : {"nn.matmul", "nn.batch_matmul"}) {
    const std::string label = "dnnl." + std::string(op).substr(3);
    const Form product{label + "_variables", CallOf(op, {In(0), In(1)}), 1};
    forms = forms + std::vector<Form>{product, Scaled(product)} + Additions(product) + Additions(Scaled(product)) + OfHeads(label, op);
  }
  return forms;
}

std::vector<Form> OneToOnes() {
  std::vector<Form> forms = Activations({"dnnl.", In(0), 0});
  for (const char* op : {"nn.max_pool2d", "nn.avg_pool2d", "nn.global_avg_pool2d", "nn.global_max_pool2d", "nn.lrn", "nn.softmax",
                         "nn.log_softmax", "exp", "log", "sqrt", "abs", "negative", "rsqrt"}) {
    const std::string name = op;
    forms.push_back({"dnnl." + (name.starts_with("nn.") ? name.substr(3) : name), CallOf(op, {In(0)}), 1});
  }
  forms.push_back({"dnnl.layer_norm", CallOf("nn.layer_norm", {In(0), IsConstant(), IsConstant()}), 1});
  forms.push_back({"dnnl.channel_shuffle", CallOf("reshape", {CallOf("transpose", {CallOf("reshape", {In(0)})})}), 3});
  forms.push_back({"dnnl.concatenate", CallOf("concatenate", {AnyTuple().As(kOutsideFields)}), 1});
  return forms;
}

std::vector<Form> Binaries() {
  std::vector<Form> forms;
  for (const char* op : {"add", "subtract", "multiply", "divide", "maximum", "minimum"}) {
    const Form two{"dnnl." + std::string(op), CallOf(op, {In(0), In(1)}), 1};
    const Form constant{"dnnl." + std::string(op) + "_constant", CallOf(op, {In(0), IsConstant()}), 1};
    forms = forms + std::vector<Form>{two, constant, Extend(two, "relu", CallOf("nn.relu", {two.pattern}), 1)};
  }
  forms.push_back({"dnnl.power_constant", CallOf("power", {In(0), IsConstant()}), 1});
  // What remains of a batch normalisation that could not be folded.
  const Form scale{"dnnl.scale", CallOf("multiply", {In(0), IsConstant()}), 1};
  const Form shift = Extend(scale, "shift", CallOf("add", {scale.pattern, IsConstant()}), 1);
  forms = forms + std::vector<Form>{shift, Extend(shift, "relu", CallOf("nn.relu", {shift.pattern}), 1)};
  return forms;
}

}  // namespace

std::vector<PatternRule> PatternTable() {
  std::vector<Form> forms = Products() + OfTwoMatricesOfIntegers() + Binaries() + OneToOnes();
  std::stable_sort(forms.begin(), forms.end(), [](const Form& a, const Form& b) { return a.operators > b.operators; });
  std::vector<PatternRule> table = {OfIntegers()};
  for (const char* op : {"nn.conv2d", "nn.conv2d_transpose", "nn.dense", "nn.matmul"}) table.push_back(WithPostOps(op));
  for (Form& form : forms) table.push_back({std::move(form.label), std::move(form.pattern), CheckMatch});
  return table;
}

std::vector<PatternRule> CallableTable() {
  std::vector<Form> forms;
  for (const char* op : {"nn.dense", "nn.matmul"}) {
    const Form product{"dnnl." + std::string(op).substr(3), CallOf(op, {In(0), IsConstant()}), 1};
    const Pattern& p = product.pattern;
    forms.push_back(product);
    forms.push_back(Extend(product, "bias", Or({CallOf("nn.bias_add", {p, IsConstant()}), CallOf("add", {p, IsConstant()})}), 1));
  }
  for (const char* op : {"nn.matmul", "nn.batch_matmul"}) {
    const Form product{"dnnl." + std::string(op).substr(3) + "_variables", CallOf(op, {In(0), In(1)}), 1};
    forms.push_back(product);
    forms.push_back(Scaled(product));
  }
  std::vector<PatternRule> table;
  for (Form& form : forms) table.push_back({std::move(form.label), std::move(form.pattern), CheckMatch});
  return table;
}

}  // namespace collage::dnnl_backend
