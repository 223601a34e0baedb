#include <cmath>
#include <limits>

#include "collage/backend/native/codegen/operators.h"
#include "collage/op/rules.h"
#include "collage/tensor/narrow.h"

namespace collage::native {

using Halide::cast;
using Halide::Expr;
using Halide::select;

Halide::Type ElementType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return Halide::Float(32);
    case DType::kFloat64:
      return Halide::Float(64);
    case DType::kFloat16:
      return Halide::Float(16);
    case DType::kBFloat16:
      return Halide::BFloat(16);
    case DType::kInt8:
      return Halide::Int(8);
    case DType::kInt16:
      return Halide::Int(16);
    case DType::kInt32:
      return Halide::Int(32);
    case DType::kInt64:
      return Halide::Int(64);
    case DType::kUInt8:
      return Halide::UInt(8);
    case DType::kUInt16:
      return Halide::UInt(16);
    case DType::kUInt32:
      return Halide::UInt(32);
    case DType::kUInt64:
      return Halide::UInt(64);
    case DType::kBool:
      return Halide::Bool();
    default:  // narrow integers and floats of 8 bits are refused before
      break;
  }
  return Halide::Float(32);
}

Expr Immediate(double value, DType dtype) {
  // Built from a double, not through a float: integers and float64 must keep all their digits.
  const Halide::Type type = ElementType(dtype);
  if (type.is_float()) return Halide::Internal::FloatImm::make(type, value);
  return Halide::Internal::make_const(type, static_cast<int64_t>(value));
}

Expr Minimum(const Expr& a, const Expr& b) { return Halide::min(a, b); }

Expr Maximum(const Expr& a, const Expr& b) { return Halide::max(a, b); }

namespace {

using Step = OpSequence::Step;

Expr Constant(double value, const Expr& like) {
  return like.type().is_float() ? Expr(Halide::Internal::FloatImm::make(like.type(), value))
                                : Halide::Internal::make_const(like.type(), static_cast<int64_t>(value));
}

// Odd polynomial (Taylor to x^11) near zero, where 1 - 2 / (e^2x + 1) would cancel; its error there is below 1e-7.
Expr Tanh(const Expr& x) {
  const Expr limited = Halide::clamp(x, Constant(-15, x), Constant(15, x));
  const Expr far = 1 - Constant(2, x) / (Halide::exp(Constant(2, x) * limited) + 1);
  const Expr square = x * x;
  Expr series = Constant(-1382.0 / 155925.0, x);
  for (double coefficient : {62.0 / 2835.0, -17.0 / 315.0, 2.0 / 15.0, -1.0 / 3.0, 1.0})
    series = series * square + Constant(coefficient, x);
  const Expr value = select(Halide::abs(x) < Constant(0.3, x), x * series, far);
  return select(Halide::is_nan(x), x, value);
}

// Elsewhere the compiler may take it that there is no NaN; what a condition decides must not depend on that.
Expr Compared(const Expr& operand, const Expr& condition) {
  return operand.type().is_float() ? Halide::strict_float(condition) : condition;
}

// Not by <= and >=, which Halide turns into the negation of the opposite: that is true of a NaN.
Expr OrEqual(const Expr& a, const Expr& b, const Expr& strictly) { return Compared(a, strictly) || Compared(a, a == b); }

Expr Sigmoid(const Expr& x) { return 1 / (1 + Halide::exp(-x)); }

Expr Sign(const Expr& x) { return select(x > 0, Constant(1, x), x < 0, Constant(-1, x), x); }

// Halide rounds integer quotients so that remainders are not negative; the operator's C++ truncates.
Expr Divide(const Expr& a, const Expr& b) {
  if (!a.type().is_int()) return a / b;
  const Expr quotient = a / b;
  const Expr remainder = a - quotient * b;
  return select(b != 0 && remainder != 0 && a < 0, quotient + select(b > 0, Constant(1, a), Constant(-1, a)), quotient);
}

Expr FloorMod(const Expr& a, const Expr& b) {
  const Expr remainder = a % b;
  if (!a.type().is_int()) return remainder;
  return select(b < 0 && remainder != 0, remainder + b, remainder);
}

Expr Power(const Expr& a, const Expr& b) {
  const auto* exponent = b.as<Halide::Internal::FloatImm>();
  if (exponent) {
    if (exponent->value == 0.5) return Halide::sqrt(a);
    if (exponent->value == 1) return a;
    if (exponent->value == 2) return a * a;
    if (exponent->value == 3) return a * a * a;
    if (exponent->value == -1) return 1 / a;
    if (exponent->value == -0.5) return 1 / Halide::sqrt(a);
  }
  if (!a.type().is_float()) return cast(a.type(), Halide::round(Halide::pow(cast<double>(a), cast<double>(b))));
  return Halide::pow(a, b);
}

template <auto function>
Status Unary(Emitter& emitter, const Step& step) {
  const size_t input = step.inputs[0];
  emitter.Define(step.outputs[0], [&emitter, input](const Index& index) { return function(emitter.At(input, index)); });
  return {};
}

template <auto function>
Status Binary(Emitter& emitter, const Step& step) {
  const size_t a = step.inputs[0];
  const size_t b = step.inputs[1];
  emitter.Define(step.outputs[0], [&emitter, a, b](const Index& index) {
    return function(emitter.At(a, Broadcast(index, emitter.ShapeOf(a))), emitter.At(b, Broadcast(index, emitter.ShapeOf(b))));
  });
  return {};
}

Status EmitWhere(Emitter& emitter, const Step& step) {
  const std::vector<size_t> inputs = step.inputs;
  emitter.Define(step.outputs[0], [&emitter, inputs](const Index& index) {
    const auto at = [&](size_t i) { return emitter.At(inputs[i], Broadcast(index, emitter.ShapeOf(inputs[i]))); };
    Expr condition = at(0);
    if (!condition.type().is_bool()) condition = condition != Constant(0, condition);
    return select(condition, at(1), at(2));
  });
  return {};
}

Status EmitCast(Emitter& emitter, const Step& step) {
  const size_t input = step.inputs[0];
  const Halide::Type type = ElementType(emitter.TypeOf(step.outputs[0]).dtype);
  emitter.Define(step.outputs[0], [&emitter, input, type](const Index& index) -> Expr {
    const Expr value = emitter.At(input, index);
    if (type.is_bool()) return value.type().is_bool() ? value : value != Constant(0, value);
    if (value.type().is_bool()) return select(value, Halide::Internal::make_one(type), Halide::Internal::make_zero(type));
    return cast(type, value);
  });
  return {};
}

Status EmitClip(Emitter& emitter, const Step& step) {
  const double low = DoubleAttribute(step.attributes, "a_min", -std::numeric_limits<double>::infinity());
  const double high = DoubleAttribute(step.attributes, "a_max", std::numeric_limits<double>::infinity());
  const size_t input = step.inputs[0];
  emitter.Define(step.outputs[0], [&emitter, input, low, high](const Index& index) {
    Expr value = emitter.At(input, index);
    // Comparisons this way round let a NaN through.
    const auto inside = [&](double bound) { return value.type().is_float() ? std::abs(bound) <= 3.4e38 : std::abs(bound) < 9.2e18; };
    if (inside(low)) value = select(value < Constant(low, value), Constant(low, value), value);
    if (inside(high)) value = select(value > Constant(high, value), Constant(high, value), value);
    return value;
  });
  return {};
}

Status EmitLeakyRelu(Emitter& emitter, const Step& step) {
  const double alpha = DoubleAttribute(step.attributes, "alpha", 0.01);
  const size_t input = step.inputs[0];
  emitter.Define(step.outputs[0], [&emitter, input, alpha](const Index& index) {
    const Expr value = emitter.At(input, index);
    return select(value < 0, value * Constant(alpha, value), value);
  });
  return {};
}

Status EmitPRelu(Emitter& emitter, const Step& step) {
  const size_t axis = AxisAttribute(step.attributes, "axis", 1, emitter.ShapeOf(step.inputs[0]).size());
  const size_t data = step.inputs[0];
  const size_t alpha = step.inputs[1];
  emitter.Define(step.outputs[0], [&emitter, data, alpha, axis](const Index& index) {
    const Expr value = emitter.At(data, index);
    const Expr slope = emitter.At(alpha, Broadcast({index[axis]}, emitter.ShapeOf(alpha)));
    return select(value < 0, value * slope, value);
  });
  return {};
}

Status EmitBiasAdd(Emitter& emitter, const Step& step) {
  const size_t axis = AxisAttribute(step.attributes, "axis", 1, emitter.ShapeOf(step.inputs[0]).size());
  const size_t data = step.inputs[0];
  const size_t bias = step.inputs[1];
  emitter.Define(step.outputs[0],
                 [&emitter, data, bias, axis](const Index& index) { return emitter.At(data, index) + emitter.At(bias, {index[axis]}); });
  return {};
}

/// Of a scale or a zero point: one for all, or one a place of an axis.
Index ParameterIndex(const Emitter& emitter, const Step& step, const Index& index) {
  if (emitter.ShapeOf(step.inputs[1]).empty()) return {};
  return {index[AxisAttribute(step.attributes, "axis", -1, index.size())]};
}

Status EmitDequantize(Emitter& emitter, const Step& step) {
  emitter.Define(step.outputs[0], [&emitter, step](const Index& index) -> Expr {
    const Index parameter = ParameterIndex(emitter, step, index);
    const Expr data = emitter.At(step.inputs[0], index);
    const Expr scale = emitter.At(step.inputs[1], parameter);
    // Differences of 16 bits are numbers of float32 too; larger ones are rounded once.
    const bool is_small = data.type().bits() <= 16;
    const Halide::Type wide = is_small ? Halide::Int(32) : Halide::Int(64);
    const Expr distance = cast(wide, data) - cast(wide, emitter.At(step.inputs[2], parameter));
    if (is_small) return cast(scale.type(), distance) * scale;
    return cast(scale.type(), cast<double>(distance) * cast<double>(scale));
  });
  return {};
}

Status EmitQuantize(Emitter& emitter, const Step& step) {
  const DType dtype = emitter.TypeOf(step.outputs[0]).dtype;
  const IntegerLimits limits = LimitsOfInteger(dtype);
  emitter.Define(step.outputs[0], [&emitter, step, dtype, limits](const Index& index) {
    const Index parameter = ParameterIndex(emitter, step, index);
    const Expr quotient = cast<float>(emitter.At(step.inputs[0], index)) / cast<float>(emitter.At(step.inputs[1], parameter));
    const Expr value = Halide::round(quotient) + cast<float>(emitter.At(step.inputs[2], parameter));
    const Expr limited = Halide::clamp(value, Immediate(static_cast<double>(limits.low), DType::kFloat32),
                                       Immediate(static_cast<double>(limits.high), DType::kFloat32));
    return cast(ElementType(dtype), limited);
  });
  return {};
}

template <int value>
Status EmitFilled(Emitter& emitter, const Step& step) {
  const DType dtype = emitter.TypeOf(step.outputs[0]).dtype;
  emitter.Define(step.outputs[0], [dtype](const Index&) { return Immediate(value, dtype); });
  return {};
}

Status EmitFull(Emitter& emitter, const Step& step) {
  const size_t fill = step.inputs[0];
  emitter.Define(step.outputs[0], [&emitter, fill](const Index&) { return emitter.At(fill, Index(emitter.ShapeOf(fill).size())); });
  return {};
}

Status EmitBatchNorm(Emitter& emitter, const Step& step) {
  const size_t axis = AxisAttribute(step.attributes, "axis", 1, emitter.ShapeOf(step.inputs[0]).size());
  const double epsilon = DoubleAttribute(step.attributes, "epsilon", 1e-5);
  const bool center = BoolAttribute(step.attributes, "center", true);
  const bool scale = BoolAttribute(step.attributes, "scale", true);
  const std::vector<size_t> in = step.inputs;
  emitter.Define(step.outputs[0], [&emitter, in, axis, epsilon, center, scale](const Index& index) {
    const Index channel = {index[axis]};
    const Expr data = emitter.At(in[0], index);
    Expr factor = 1 / Halide::sqrt(emitter.At(in[4], channel) + Constant(epsilon, data));
    if (scale) factor = factor * emitter.At(in[1], channel);
    const Expr centred = (data - emitter.At(in[3], channel)) * factor;
    return center ? centred + emitter.At(in[2], channel) : centred;
  });
  for (size_t i = 1; i < step.outputs.size(); ++i) {
    const size_t statistic = in[2 + i];
    emitter.Define(step.outputs[i], [&emitter, statistic](const Index& index) { return emitter.At(statistic, index); });
  }
  return {};
}

}  // namespace

void AddPointwise(EmitTable& table) {
  table["abs"] = Unary<[](const Expr& x) { return cast(x.type(), Halide::abs(x)); }>;
  table["negative"] = Unary<[](const Expr& x) { return -x; }>;
  table["exp"] = Unary<[](const Expr& x) { return Halide::exp(x); }>;
  table["log"] = Unary<[](const Expr& x) { return Halide::log(x); }>;
  table["sqrt"] = Unary<[](const Expr& x) { return Halide::sqrt(x); }>;
  table["rsqrt"] = Unary<[](const Expr& x) { return 1 / Halide::sqrt(x); }>;
  table["erf"] = Unary<[](const Expr& x) { return Halide::erf(x); }>;
  table["sin"] = Unary<[](const Expr& x) { return Halide::sin(x); }>;
  table["cos"] = Unary<[](const Expr& x) { return Halide::cos(x); }>;
  table["ceil"] = Unary<[](const Expr& x) { return x.type().is_float() ? Halide::ceil(x) : x; }>;
  table["floor"] = Unary<[](const Expr& x) { return x.type().is_float() ? Halide::floor(x) : x; }>;
  table["round"] = Unary<[](const Expr& x) { return x.type().is_float() ? Halide::round(x) : x; }>;
  table["sign"] = Unary<Sign>;
  table["tanh"] = Unary<Tanh>;
  table["sigmoid"] = Unary<Sigmoid>;
  table["nn.relu"] = Unary<[](const Expr& x) { return select(x < 0, Constant(0, x), x); }>;
  table["copy"] = Unary<[](const Expr& x) { return x; }>;
  table["logical_not"] = Unary<[](const Expr& x) { return !x; }>;
  table["add"] = Binary<[](const Expr& a, const Expr& b) { return a + b; }>;
  table["subtract"] = Binary<[](const Expr& a, const Expr& b) { return a - b; }>;
  table["multiply"] = Binary<[](const Expr& a, const Expr& b) { return a * b; }>;
  table["divide"] = Binary<Divide>;
  table["floor_mod"] = Binary<FloorMod>;
  table["power"] = Binary<Power>;
  table["maximum"] = Binary<Maximum>;
  table["minimum"] = Binary<Minimum>;
  table["equal"] = Binary<[](const Expr& a, const Expr& b) { return Compared(a, a == b); }>;
  table["not_equal"] = Binary<[](const Expr& a, const Expr& b) { return Compared(a, a != b); }>;
  table["greater"] = Binary<[](const Expr& a, const Expr& b) { return Compared(a, (a > b)); }>;
  table["greater_equal"] = Binary<[](const Expr& a, const Expr& b) { return OrEqual(a, b, a > b); }>;
  table["less"] = Binary<[](const Expr& a, const Expr& b) { return Compared(a, a < b); }>;
  table["less_equal"] = Binary<[](const Expr& a, const Expr& b) { return OrEqual(a, b, a < b); }>;
  table["logical_and"] = Binary<[](const Expr& a, const Expr& b) { return a && b; }>;
  table["logical_or"] = Binary<[](const Expr& a, const Expr& b) { return a || b; }>;
  table["where"] = EmitWhere;
  table["cast"] = EmitCast;
  table["clip"] = EmitClip;
  table["nn.leaky_relu"] = EmitLeakyRelu;
  table["nn.prelu"] = EmitPRelu;
  table["nn.bias_add"] = EmitBiasAdd;
  table["nn.batch_norm"] = EmitBatchNorm;
  table["zeros"] = EmitFilled<0>;
  table["ones"] = EmitFilled<1>;
  table["zeros_like"] = EmitFilled<0>;
  table["ones_like"] = EmitFilled<1>;
  table["full"] = EmitFull;
  table["qnn.quantize"] = EmitQuantize;
  table["qnn.dequantize"] = EmitDequantize;
}

}  // namespace collage::native
