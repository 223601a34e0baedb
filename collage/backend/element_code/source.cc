#include "collage/backend/element_code/source.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "collage/backend/element_code/loops.h"
#include "collage/backend/element_code/types.h"
#include "collage/op/col2im.h"
#include "collage/op/rules.h"
#include "collage/op/slice.h"

namespace collage::element_code {
namespace {

using Step = OpSequence::Step;

/// Of one element; %0 and %1 stand for the operands.
const std::unordered_map<std::string, std::string>& Formulas() {
  // Comparisons are written so that NaN goes through.
  static const std::unordered_map<std::string, std::string> formulas = {{"abs", "fabs(%0)"},
                                                                        {"negative", "-%0"},
                                                                        {"exp", "exp(%0)"},
                                                                        {"log", "log(%0)"},
                                                                        {"sqrt", "sqrt(%0)"},
                                                                        {"rsqrt", "1.0f / sqrt(%0)"},
                                                                        {"erf", "erf(%0)"},
                                                                        {"tanh", "tanh(%0)"},
                                                                        {"sigmoid", "1.0f / (1.0f + exp(-%0))"},
                                                                        {"ceil", "ceil(%0)"},
                                                                        {"floor", "floor(%0)"},
                                                                        {"nn.relu", "%0 < 0.0f ? 0.0f : %0"},
                                                                        {"add", "%0 + %1"},
                                                                        {"subtract", "%0 - %1"},
                                                                        {"multiply", "%0 * %1"},
                                                                        {"divide", "%0 / %1"},
                                                                        {"power", "pow(%0, %1)"},
                                                                        {"maximum", "%0 < %1 || %1 != %1 ? %1 : %0"},
                                                                        {"minimum", "%1 < %0 || %1 != %1 ? %1 : %0"},
                                                                        {"nn.bias_add", "%0 + %1"}};
  return formulas;
}

/// Of one element of any type.
const std::unordered_map<std::string, std::string>& FormulasOfAnyType() {
  static const std::unordered_map<std::string, std::string> formulas = {{"copy", "%0"},
                                                                        {"where", "%0 ? %1 : %2"},
                                                                        {"equal", "%0 == %1"},
                                                                        {"not_equal", "%0 != %1"},
                                                                        {"greater", "%0 > %1"},
                                                                        {"greater_equal", "%0 >= %1"},
                                                                        {"less", "%0 < %1"},
                                                                        {"less_equal", "%0 <= %1"},
                                                                        {"logical_and", "%0 && %1"},
                                                                        {"logical_or", "%0 || %1"},
                                                                        {"logical_not", "!%0"}};
  return formulas;
}

/// How a constant is written that has one element; nothing where it is read from memory.
std::optional<std::string> NumberText(const Tensor& constant) {
  constexpr int64_t kMost = int64_t{1} << 30;  // as indices: no literal needs a suffix
  if (constant.ElementCount() != 1) return std::nullopt;
  if (IsFloatingPoint(constant.dtype())) {
    const double number = constant.ToDouble()[0];
    return std::isfinite(number) ? std::optional(FloatText(number)) : std::nullopt;
  }
  const int64_t number = constant.ToInt64()[0];
  return std::abs(number) <= kMost ? std::optional("(" + std::to_string(number) + ")") : std::nullopt;
}

/// An element of its argument, or one of several.
bool IsMovement(const std::string& name) {
  static const std::set<std::string> names = {"transpose",         "strided_slice",     "split", "concatenate", "nn.pad",
                                              "nn.depth_to_space", "nn.space_to_depth", "take"};
  return names.contains(name);
}

class Generator {
 public:
  Generator(const OpSequence& sequence, const Language& language)
      : sequence_(sequence), language_(language), maker_(sequence.values.size(), nullptr) {
    for (const Step& step : sequence.steps) {
      for (const size_t output : step.outputs) maker_[output] = &step;
    }
  }

  Result<GeneratedSource> Generate() {
    FindStored();
    for (const Step& step : sequence_.steps) {
      for (const size_t output : step.outputs) {
        if (is_stored_[output]) COLLAGE_TRY_STATUS(AddKernel(step, output));
      }
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] static bool HasLoops(const Step& step) { return FindLoops(step.op->name) != nullptr; }

  /// Results, what loops compute, and what many items of loops read.
  void FindStored() {
    is_stored_.assign(sequence_.values.size(), false);
    for (const size_t result : sequence_.results) is_stored_[result] = true;
    for (const Step& step : sequence_.steps) {
      if (!HasLoops(step)) continue;
      for (const size_t output : step.outputs) is_stored_[output] = true;
      if (LoopsOverRows(step.op->name)) continue;
      for (const size_t input : step.inputs) is_stored_[input] = is_stored_[input] || (maker_[input] && !maker_[input]->op->is_view);
    }
  }

  Status AddKernel(const Step& step, size_t output) {
    launch_ = {"collage_" + std::to_string(result_.launches.size()), static_cast<size_t>(TypeOf(output).ElementCount())};
    launch_.flops = step.op->work(step.argument_types, step.result_type, step.attributes).flops;
    KernelBody body([this](KernelBody& in, size_t value, const std::string& index) { return Element(in, value, index); },
                    TypeOf(output).dtype, language_.lanes);
    if (const Loops loops = FindLoops(step.op->name)) {
      launch_.items = COLLAGE_TRY(loops(body, sequence_, step));
    } else {
      body.Store("i", Computed(body, step, output, "i"));
    }
    launch_.lanes = body.lanes();
    launch_.values.push_back(output);
    std::vector<Array> inputs;
    for (const size_t value : launch_.values) {
      if (value != output) inputs.push_back(ArrayOf(value));
    }
    result_.text += language_.kernel(launch_.name, inputs, {"out", TypeOf(output).dtype}, body.text(), launch_.lanes);
    const bool is_result = std::find(sequence_.results.begin(), sequence_.results.end(), output) != sequence_.results.end();
    if (!is_result) result_.intermediate.push_back(output);
    result_.launches.push_back(std::move(launch_));
    return {};
  }

  [[nodiscard]] const TensorType& TypeOf(size_t value) const { return sequence_.values[value].type; }
  [[nodiscard]] Array ArrayOf(size_t value) const {
    return {"v" + std::to_string(value), TypeOf(value).dtype, sequence_.values[value].constant.has_value()};
  }

  /// The name, or the text, of an element of a value.
  std::string Element(KernelBody& body, size_t value, const std::string& index) {
    const auto& constant = sequence_.values[value].constant;
    if (constant) {
      if (const std::optional<std::string> number = NumberText(*constant)) return *number;
    }
    if (!maker_[value] || is_stored_[value]) {
      std::vector<size_t>& values = launch_.values;
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
      std::vector<size_t>& constants = result_.constants;
      if (constant && std::find(constants.begin(), constants.end(), value) == constants.end()) constants.push_back(value);
      return FromStored(TypeOf(value).dtype, language_.element(ArrayOf(value), index));
    }
    if (const std::string* known = body.Find(value, index)) return *known;
    const Step& step = *maker_[value];
    const DType dtype = TypeOf(value).dtype;
    const std::string text = Computed(body, step, value, index);
    // Rounded as if it had been stored: what follows may jump, or take most digits away.
    return body.Bind(value, index, dtype, IsMovement(step.op->name) ? text : Rounded(dtype, text));
  }

  std::string Computed(KernelBody& body, const Step& step, size_t output, const std::string& index) {
    if (step.op->is_view) return Element(body, step.inputs[0], index);
    if (step.op->name == "concatenate") return Joined(body, step, output, index);
    if (step.op->name == "nn.pad") return Padded(body, step, output, index);
    if (step.op->name == "nn.col2im") return Gathered(body, step, index);
    if (IsMovement(step.op->name)) return Element(body, step.inputs[0], body.Int(MovedIndex(body, step, output, index)));
    std::string text = FormulaOf(step);
    for (size_t operand = step.inputs.size(); operand-- > 0;) {
      const size_t input = step.inputs[operand];
      const std::string element = Element(body, input, body.Int(OperandIndex(step, input, output, index)));
      const std::string place = "%" + std::to_string(operand);
      for (size_t at = text.find(place); at != std::string::npos; at = text.find(place, at + element.size())) text.replace(at, 2, element);
    }
    return text;
  }

  [[nodiscard]] std::string FormulaOf(const Step& step) const {
    if (step.op->name == "cast") return CastFormula(TypeOf(step.inputs[0]).dtype, TypeOf(step.outputs[0]).dtype);
    if (step.op->name == "nn.leaky_relu") return "%0 < 0.0f ? %0 * " + FloatText(DoubleAttribute(step.attributes, "alpha", 0.01)) + " : %0";
    if (step.op->name == "clip") {
      const std::string low = FloatText(DoubleAttribute(step.attributes, "a_min", 0));
      const std::string high = FloatText(DoubleAttribute(step.attributes, "a_max", 0));
      return "%0 < " + low + " ? " + low + " : (%0 > " + high + " ? " + high + " : %0)";
    }
    const auto found = FormulasOfAnyType().find(step.op->name);
    return found == FormulasOfAnyType().end() ? Formulas().at(step.op->name) : found->second;
  }

  [[nodiscard]] static std::string CastFormula(DType from, DType to) {
    if (to == DType::kBool) return "%0 != 0";
    if (IsFloatingPoint(to)) return "%0";
    return IsFloatingPoint(from) ? "to_" + std::string(Name(to)) + "(%0)" : "(" + ComputedType(to) + ")%0";
  }

  /// Where an operand's element lies that belongs to an element of the result.
  [[nodiscard]] std::string OperandIndex(const Step& step, size_t input, size_t output, const std::string& index) const {
    const Shape& to = TypeOf(output).shape;
    Shape from = TypeOf(input).shape;
    if (step.op->name == "nn.bias_add" && input == step.inputs[1]) {
      const auto axis = static_cast<size_t>(AxisAttribute(step.attributes, "axis", 1, to.size()));
      from.resize(to.size() - axis, 1);
    }
    from.insert(from.begin(), to.size() - from.size(), 1);
    return from == to ? index : Regrouped(index, to, from, [](size_t d) { return d; });
  }

  /// Where the element lies that an operator moves to `index` of its output.
  [[nodiscard]] std::string MovedIndex(KernelBody& body, const Step& step, size_t output, const std::string& index) {
    if (step.op->name == "take") return TakenIndex(body, step, index);
    if (step.op->name == "transpose") return TransposedIndex(step, output, index);
    if (step.op->name == "nn.depth_to_space") return DepthToSpaceIndex(step, output, index);
    if (step.op->name == "nn.space_to_depth") return SpaceToDepthIndex(step, output, index);
    return step.op->name == "split" ? SplitIndex(step, output, index) : SlicedIndex(step, output, index);
  }

  [[nodiscard]] std::string TransposedIndex(const Step& step, size_t output, const std::string& index) const {
    const std::vector<size_t> axes = *ReadPermutation(TypeOf(step.inputs[0]), step.attributes);
    std::vector<size_t> of(axes.size());
    for (size_t d = 0; d < axes.size(); ++d) of[axes[d]] = d;
    return Regrouped(index, TypeOf(output).shape, TypeOf(step.inputs[0]).shape, [&](size_t d) { return of[d]; });
  }

  [[nodiscard]] std::string DepthToSpaceIndex(const Step& step, size_t output, const std::string& index) const {
    const Shape& from = TypeOf(step.inputs[0]).shape;
    const int64_t block = IntAttribute(step.attributes, "block_size", 1);
    const int64_t channels = TypeOf(output).shape[1];
    const Shape to = {from[0], channels, from[2], block, from[3], block};
    const bool depth_first = StringAttribute(step.attributes, "mode", "DCR") == "DCR";
    const Shape parts =
        depth_first ? Shape{from[0], block, block, channels, from[2], from[3]} : Shape{from[0], channels, block, block, from[2], from[3]};
    const std::array<size_t, 6> of = depth_first ? std::array<size_t, 6>{0, 3, 5, 1, 2, 4} : std::array<size_t, 6>{0, 1, 3, 5, 2, 4};
    return Regrouped(index, to, parts, [&](size_t d) { return of[d]; });
  }

  [[nodiscard]] std::string SpaceToDepthIndex(const Step& step, size_t output, const std::string& index) const {
    const Shape& to = TypeOf(output).shape;
    const int64_t block = IntAttribute(step.attributes, "block_size", 1);
    const int64_t channels = TypeOf(step.inputs[0]).shape[1];
    constexpr std::array<size_t, 6> of = {0, 3, 4, 1, 5, 2};
    return Regrouped(index, {to[0], block, block, channels, to[2], to[3]}, {to[0], channels, to[2], block, to[3], block},
                     [&](size_t d) { return of[d]; });
  }

  [[nodiscard]] std::string SlicedIndex(const Step& step, size_t output, const std::string& index) const {
    const Shape& to = TypeOf(output).shape;
    const Shape& from = TypeOf(step.inputs[0]).shape;
    const Slice slice = *ReadSlice(TypeOf(step.inputs[0]), step.attributes);
    int64_t first = 0;
    int64_t stride = 1;
    int64_t inside = 1;
    std::string text;
    for (size_t d = to.size(); d-- > 0;) {
      first += slice.begin[d] * stride;
      if (to[d] > 1)
        text += " + (" + index + ") / " + std::to_string(inside) + " % " + std::to_string(to[d]) + " * " + "(" +
                std::to_string(slice.stride[d] * stride) + ")";
      stride *= from[d];
      inside *= to[d];
    }
    return std::to_string(first) + text;
  }

  /// A tensor as blocks of what lies along an axis and behind it.
  struct Blocks {
    int64_t inner = 1;  ///< elements behind the axis
    size_t axis = 0;
  };
  [[nodiscard]] Blocks BlocksAlong(const Step& step, const Shape& shape) const {
    Blocks blocks{1, AxisAttribute(step.attributes, "axis", 0, shape.size())};
    for (size_t d = blocks.axis + 1; d < shape.size(); ++d) blocks.inner *= shape[d];
    return blocks;
  }

  [[nodiscard]] std::string SplitIndex(const Step& step, size_t output, const std::string& index) const {
    const Shape& from = TypeOf(step.inputs[0]).shape;
    const Blocks blocks = BlocksAlong(step, from);
    int64_t before = 0;
    for (size_t part = 0; step.outputs[part] != output; ++part) before += TypeOf(step.outputs[part]).shape[blocks.axis];
    const std::string of_part = std::to_string(TypeOf(output).shape[blocks.axis] * blocks.inner);
    const std::string of_whole = std::to_string(from[blocks.axis] * blocks.inner);
    return "(" + index + ") / " + of_part + " * " + of_whole + " + (" + index + ") % " + of_part + " + " +
           std::to_string(before * blocks.inner);
  }

  std::string TakenIndex(KernelBody& body, const Step& step, const std::string& index) {
    const TensorType& from = TypeOf(step.inputs[0]);
    const bool has_axis = HasAttribute(step.attributes, "axis");
    const Blocks blocks = has_axis ? BlocksAlong(step, from.shape) : Blocks();
    const int64_t count = has_axis ? from.shape[blocks.axis] : from.ElementCount();
    const std::string inner = std::to_string(blocks.inner);
    const std::string extent = std::to_string(count);
    const std::string taken = std::to_string(TypeOf(step.inputs[1]).ElementCount());
    const std::string at = Element(body, step.inputs[1], body.Int("(" + index + ") / " + inner + " % " + taken));
    const bool wraps = StringAttribute(step.attributes, "mode", "clip") == "wrap";
    const std::string place = body.Int(wraps ? "(" + at + " % " + extent + " + " + extent + ") % " + extent
                                             : at + " < 0 ? 0 : " + at + " >= " + extent + " ? " + extent + " - 1 : " + at);
    return "((" + index + ") / (" + inner + " * " + taken + ") * " + extent + " + " + place + ") * " + inner + " + (" + index + ") % " +
           inner;
  }

  std::string Joined(KernelBody& body, const Step& step, size_t output, const std::string& index) {
    const Blocks blocks = BlocksAlong(step, TypeOf(output).shape);
    const std::string of_whole = std::to_string(TypeOf(output).shape[blocks.axis] * blocks.inner);
    const std::string block = body.Int("(" + index + ") / " + of_whole);
    const std::string place = body.Int("(" + index + ") % " + of_whole);
    std::string element = body.Number(TypeOf(output).dtype);
    int64_t begin = 0;
    for (const size_t part : step.inputs) {
      const int64_t extent = TypeOf(part).shape[blocks.axis] * blocks.inner;
      const std::string from = std::to_string(begin);
      body.Begin("if (" + place + " >= " + from + " && " + place + " < " + std::to_string(begin + extent) + ") {");
      body.Line(element + " = " + Element(body, part, body.Int(block + " * " + std::to_string(extent) + " + " + place + " - " + from)) +
                ";");
      body.End();
      begin += extent;
    }
    return element;
  }

  std::string Padded(KernelBody& body, const Step& step, size_t output, const std::string& index) {
    const Shape& from = TypeOf(step.inputs[0]).shape;
    const Shape& to = TypeOf(output).shape;
    const auto widths = *ReadPadWidth(TypeOf(step.inputs[0]), step.attributes);
    std::string source;
    std::string is_inside;
    int64_t stride = 1;
    int64_t inside = 1;
    for (size_t d = to.size(); d-- > 0; inside *= to[d], stride *= from[d]) {
      if (to[d] == 1) continue;
      const std::string before = std::to_string(widths[d][0]);
      const std::string place = body.Int("(" + index + ") / " + std::to_string(inside) + " % " + std::to_string(to[d]));
      source += (source.empty() ? "" : " + ") + std::string("(") + place + " - " + before + ") * " + std::to_string(stride);
      if (from[d] == to[d]) continue;
      is_inside +=
          (is_inside.empty() ? "" : " && ") + place + " >= " + before + " && " + place + " < " + std::to_string(widths[d][0] + from[d]);
    }
    if (is_inside.empty()) return Element(body, step.inputs[0], index);
    const std::string element = body.Number(TypeOf(output).dtype);
    body.Line(element + " = " + Element(body, step.inputs[1], "0") + ";");
    body.Begin("if (" + is_inside + ") {");
    body.Line(element + " = " + Element(body, step.inputs[0], body.Int(source)) + ";");
    body.End();
    return element;
  }

  /// The sum of the taps that reach an element. Each element of the blocks is in one sum only, so they too are computed where they are
  /// read.
  std::string Gathered(KernelBody& body, const Step& step, const std::string& index) {
    const Col2Im c = *ReadCol2Im(TypeOf(step.inputs[0]), step.attributes);
    const size_t dimensions = c.image.size();
    const auto number = [](int64_t value) { return std::to_string(value); };
    const std::string plane = body.Int("(" + index + ") / " + number(ElementCount(c.image)));
    std::vector<std::string> places;
    std::vector<std::string> firsts;
    const std::vector<int64_t> strides = RowMajorStrides(c.image);
    for (size_t d = 0; d < dimensions; ++d) {
      const TapsAlong taps(c, d);
      places.push_back(body.Int("(" + index + ") / " + number(strides[d]) + " % " + number(c.image[d]) + " + " + number(c.pad_begin[d])));
      std::string first =
          places[d] + " % " + number(c.stride[d]) + " / " + number(taps.divisor) + " * " + number(taps.factor) + " % " + number(taps.step);
      if (taps.divisor > 1) first = places[d] + " % " + number(taps.divisor) + " != 0 ? " + number(c.kernel[d]) + " : " + first;
      firsts.push_back(body.Int(first));
    }
    const std::string sum = body.Number(DType::kFloat32);
    body.Line(sum + " = 0.0f;");
    std::string tap = plane;
    std::string block = "0";
    for (size_t d = 0; d < dimensions; ++d) {
      const std::string tap_along = "tap" + number(static_cast<int64_t>(d));
      const std::string block_along = "block" + number(static_cast<int64_t>(d));
      body.Begin("for (int " + tap_along + " = " + firsts[d] + "; " + tap_along + " < " + number(c.kernel[d]) + "; " + tap_along +
                 " += " + number(TapsAlong(c, d).step) + ") {");
      body.Line("const int " + block_along + " = (" + places[d] + " - " + tap_along + " * " + number(c.dilation[d]) + ") / " +
                number(c.stride[d]) + ";");
      // Not by the quotient, which is 0 just below 0 too.
      body.Line("if (" + tap_along + " * " + number(c.dilation[d]) + " > " + places[d] + " || " + block_along +
                " >= " + number(c.blocks[d]) + ") continue;");
      tap = "(" + tap + ") * " + number(c.kernel[d]) + " + " + tap_along;
      block = "(" + block + ") * " + number(c.blocks[d]) + " + " + block_along;
    }
    const std::string at = body.Int("(" + tap + ") * " + number(ElementCount(c.blocks)) + " + " + block);
    body.Line(sum + " += " + Element(body, step.inputs[0], at) + ";");
    for (size_t d = 0; d < dimensions; ++d) body.End();
    return sum;
  }

  /// The flat index in an array `from` whose dimension d is dimension of(d) of the array `to`; what has one element only is always at 0.
  static std::string Regrouped(const std::string& index, const Shape& to, const Shape& from, const std::function<size_t(size_t)>& of) {
    std::string text;
    int64_t stride = 1;
    for (size_t d = from.size(); d-- > 0;) {
      if (from[d] > 1) {
        int64_t inside = 1;
        for (size_t e = of(d) + 1; e < to.size(); ++e) inside *= to[e];
        text += (text.empty() ? "" : " + ") + std::string("(") + index + ") / " + std::to_string(inside) + " % " +
                std::to_string(to[of(d)]) + " * " + std::to_string(stride);
      }
      stride *= from[d];
    }
    return text.empty() ? "0" : text;
  }

  const OpSequence& sequence_;
  const Language& language_;
  std::vector<const Step*> maker_;  // by value
  std::vector<bool> is_stored_;     // by value
  GeneratedSource result_;
  Launch launch_;
};

/// Operators that move elements, choose among them or convert them.
bool TakesAnyType(const OpDef& op) {
  return op.is_view || op.name == "cast" || IsMovement(op.name) || FormulasOfAnyType().contains(op.name);
}

/// Why there is no code for a tensor; empty: there is.
std::string Objection(const TensorType& type) {
  constexpr int64_t kMostElements = int64_t{1} << 30;  // generated code counts in 32 bits
  if (!HasType(type.dtype)) return "tensors of " + std::string(Name(type.dtype));
  if (type.ElementCount() == 0) return "an empty tensor";
  if (type.ElementCount() > kMostElements) return "a tensor of more than 2^30 elements";
  return {};
}

std::string Objection(const Expr& expr) {
  const OpDef* op = CalledOp(expr);
  if (!op) return "not a call of an operator";
  const bool takes_any_type = TakesAnyType(*op);
  const bool is_known = takes_any_type || op->name == "clip" || op->name == "nn.leaky_relu" || op->name == "nn.col2im" ||
                        Formulas().contains(op->name) || FindLoops(op->name) != nullptr;
  if (!is_known) return "no code for " + op->name;
  std::vector<TensorType> types = FlattenTensors(expr->type());
  if (types.size() != 1 && op->name != "split") return "several results";
  for (const Expr& argument : expr->As<Call>()->args) {
    for (TensorType& type : FlattenTensors(argument->type())) types.push_back(std::move(type));
  }
  if (op->name == "nn.pad" && StringAttribute(expr->As<Call>()->attributes, "pad_mode", "constant") != "constant")
    return "nn.pad with other than a constant";
  if (IsReduction(op->name) && !RowsOfReduction(*expr->As<Call>())) return "a reduction of axes that are not neighbours";
  for (const TensorType& type : types) {
    if (std::string objection = Objection(type); !objection.empty()) return objection;
    if (!takes_any_type && !IsFloatingPoint(type.dtype)) return "no code for " + op->name + " of " + std::string(Name(type.dtype));
  }
  return {};
}

}  // namespace

Verdict Supports(const std::string& backend, const Expr& call) {
  const std::string objection = Objection(call);
  return objection.empty() ? Verdict::Accept() : Verdict::Reject(backend + ": " + objection);
}

bool SupportsSequence(const OpSequence& sequence) {
  const auto is_supported = [](const Step& step) { return Objection(step.call).empty(); };
  const auto is_made = [&](size_t result) {
    return std::any_of(sequence.steps.begin(), sequence.steps.end(),
                       [&](const Step& step) { return std::find(step.outputs.begin(), step.outputs.end(), result) != step.outputs.end(); });
  };
  const std::set<size_t> results(sequence.results.begin(), sequence.results.end());
  return results.size() == sequence.results.size() && std::all_of(sequence.steps.begin(), sequence.steps.end(), is_supported) &&
         std::all_of(results.begin(), results.end(), is_made);
}

bool HasRows(const OpSequence& sequence) {
  return std::any_of(sequence.steps.begin(), sequence.steps.end(), [](const Step& step) { return LoopsOverRows(step.op->name); });
}

Result<GeneratedSource> GenerateSource(const OpSequence& sequence, const Language& language) {
  return Generator(sequence, language).Generate();
}

}  // namespace collage::element_code
