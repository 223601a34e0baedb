#include "collage/backend/element_code/source.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

#include "collage/backend/element_code/loops.h"
#include "collage/op/rules.h"

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
                                                                        {"copy", "%0"},
                                                                        {"add", "%0 + %1"},
                                                                        {"subtract", "%0 - %1"},
                                                                        {"multiply", "%0 * %1"},
                                                                        {"divide", "%0 / %1"},
                                                                        {"maximum", "%0 < %1 || %1 != %1 ? %1 : %0"},
                                                                        {"minimum", "%1 < %0 || %1 != %1 ? %1 : %0"},
                                                                        {"nn.bias_add", "%0 + %1"}};
  return formulas;
}

bool IsMovement(const std::string& name) { return name == "transpose"; }

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

  /// Results, what loops compute, and what loops read many times.
  void FindStored() {
    is_stored_.assign(sequence_.values.size(), false);
    for (const size_t result : sequence_.results) is_stored_[result] = true;
    for (const Step& step : sequence_.steps) {
      if (!HasLoops(step)) continue;
      for (const size_t output : step.outputs) is_stored_[output] = true;
      for (const size_t input : step.inputs) is_stored_[input] = is_stored_[input] || (maker_[input] && !maker_[input]->op->is_view);
    }
  }

  Status AddKernel(const Step& step, size_t output) {
    launch_ = {"collage_" + std::to_string(result_.launches.size()), static_cast<size_t>(TypeOf(output).ElementCount()), 0, {}};
    launch_.flops = step.op->work(step.argument_types, step.result_type, step.attributes).flops;
    KernelBody body([this](KernelBody& in, size_t value, const std::string& index) { return Element(in, value, index); });
    if (const Loops loops = FindLoops(step.op->name)) {
      launch_.items = COLLAGE_TRY(loops(body, sequence_, step));
    } else {
      body.Line("out[i] = " + Computed(body, step, output, "i") + ";");
    }
    launch_.values.push_back(output);
    std::vector<Array> inputs;
    for (const size_t value : launch_.values) {
      if (value != output) inputs.push_back(ArrayOf(value));
    }
    result_.text += language_.kernel(launch_.name, inputs, body.text());
    const bool is_result = std::find(sequence_.results.begin(), sequence_.results.end(), output) != sequence_.results.end();
    if (!is_result) result_.intermediate.push_back(output);
    result_.launches.push_back(std::move(launch_));
    return {};
  }

  [[nodiscard]] const TensorType& TypeOf(size_t value) const { return sequence_.values[value].type; }
  [[nodiscard]] Array ArrayOf(size_t value) const { return {"v" + std::to_string(value), sequence_.values[value].constant.has_value()}; }

  /// The name, or the text, of an element of a value.
  std::string Element(KernelBody& body, size_t value, const std::string& index) {
    const auto& constant = sequence_.values[value].constant;
    if (constant && constant->ElementCount() == 1) {
      const double number = constant->ToDouble()[0];
      if (std::isfinite(number)) return FloatText(number);
    }
    if (!maker_[value] || is_stored_[value]) {
      std::vector<size_t>& values = launch_.values;
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
      std::vector<size_t>& constants = result_.constants;
      if (constant && std::find(constants.begin(), constants.end(), value) == constants.end()) constants.push_back(value);
      return language_.element(ArrayOf(value), index);
    }
    if (const std::string* known = body.Find(value, index)) return *known;
    const std::string text = Computed(body, *maker_[value], value, index);
    return body.Bind(value, index, text);
  }

  std::string Computed(KernelBody& body, const Step& step, size_t output, const std::string& index) {
    if (step.op->is_view) return Element(body, step.inputs[0], index);
    if (IsMovement(step.op->name)) return Element(body, step.inputs[0], Transposed(body, step, output, index));
    std::string text = FormulaOf(step);
    for (size_t operand = step.inputs.size(); operand-- > 0;) {
      const size_t input = step.inputs[operand];
      const std::string element = Element(body, input, body.Int(OperandIndex(step, input, output, index)));
      const std::string place = "%" + std::to_string(operand);
      for (size_t at = text.find(place); at != std::string::npos; at = text.find(place, at + element.size())) text.replace(at, 2, element);
    }
    return text;
  }

  [[nodiscard]] static std::string FormulaOf(const Step& step) {
    if (step.op->name == "clip") {
      const std::string low = FloatText(DoubleAttribute(step.attributes, "a_min", 0));
      const std::string high = FloatText(DoubleAttribute(step.attributes, "a_max", 0));
      return "%0 < " + low + " ? " + low + " : (%0 > " + high + " ? " + high + " : %0)";
    }
    return Formulas().at(step.op->name);
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

  [[nodiscard]] std::string Transposed(KernelBody& body, const Step& step, size_t output, const std::string& index) const {
    const Shape& to = TypeOf(output).shape;
    std::vector<int64_t> axes = IntsAttribute(step.attributes, "axes", {});
    for (size_t d = to.size(); axes.size() < to.size();) axes.push_back(static_cast<int64_t>(--d));
    const Shape& from = TypeOf(step.inputs[0]).shape;
    Shape in_order;
    std::vector<size_t> of(to.size());
    for (size_t d = 0; d < to.size(); ++d) {
      const auto axis = static_cast<size_t>(axes[d] < 0 ? axes[d] + static_cast<int64_t>(to.size()) : axes[d]);
      of[axis] = d;
    }
    return body.Int(Regrouped(index, to, from, [&](size_t d) { return of[d]; }));
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

/// Why there is no code for a tensor; empty: there is.
std::string Objection(const TensorType& type) {
  constexpr int64_t kMostElements = int64_t{1} << 30;  // generated code counts in 32 bits
  if (type.dtype != DType::kFloat32) return "tensors of " + std::string(Name(type.dtype));
  if (type.ElementCount() == 0) return "an empty tensor";
  if (type.ElementCount() > kMostElements) return "a tensor of more than 2^30 elements";
  return {};
}

std::string Objection(const Expr& expr) {
  const OpDef* op = CalledOp(expr);
  if (!op) return "not a call of an operator";
  const bool is_known =
      op->is_view || IsMovement(op->name) || op->name == "clip" || Formulas().contains(op->name) || FindLoops(op->name) != nullptr;
  if (!is_known) return "no code for " + op->name;
  std::vector<TensorType> types = FlattenTensors(expr->type());
  if (types.size() != 1) return "several results";
  for (const Expr& argument : expr->As<Call>()->args) {
    for (TensorType& type : FlattenTensors(argument->type())) types.push_back(std::move(type));
  }
  for (const TensorType& type : types) {
    if (std::string objection = Objection(type); !objection.empty()) return objection;
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

Result<GeneratedSource> GenerateSource(const OpSequence& sequence, const Language& language) {
  return Generator(sequence, language).Generate();
}

}  // namespace collage::element_code
