#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "collage/op/axis_view.h"
#include "collage/op/families.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

Result<Type> NumberType(TypeArguments arguments, const Attributes&) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  COLLAGE_TRY_STATUS(ExpectNumber(data, "data"));
  return Type(data);
}

Result<Type> FloatType(TypeArguments arguments, const Attributes&) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  COLLAGE_TRY_STATUS(ExpectFloat(data, "data"));
  return Type(data);
}

Result<Type> BoolType(TypeArguments arguments, const Attributes&) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  COLLAGE_TRY_STATUS(ExpectBool(data, "data"));
  return Type(data);
}

Result<Type> IntegerType(TypeArguments arguments, const Attributes&) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  COLLAGE_TRY_STATUS(ExpectInteger(data, "data"));
  return Type(data);
}

Result<Type> FloatPredicateType(TypeArguments arguments, const Attributes&) {
  TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  COLLAGE_TRY_STATUS(ExpectFloat(data, "data"));
  data.dtype = DType::kBool;
  return Type(data);
}

Result<Type> ClipType(TypeArguments arguments, const Attributes& attributes) {
  const double low = DoubleAttribute(attributes, "a_min", 0);
  const double high = DoubleAttribute(attributes, "a_max", 0);
  if (!(low <= high)) {
    return Fail("attribute 'a_min' is " + ToString(AttributeValue(low)) + ", expected at most 'a_max', which is " +
                ToString(AttributeValue(high)));
  }
  return NumberType(arguments, attributes);
}

/// A kernel that applies `function(x, attributes)` to each element; x is a double for floating point tensors, so that float32
/// results are rounded once.
template <class Function>
OpDef::ReferenceKernel FloatKernel(Function function) {
  return [function](std::span<const Tensor> inputs, const Attributes&, std::span<Tensor> outputs) {
    VisitElementType(inputs[0].dtype(), [&](auto element) {
      using T = decltype(element);
      if constexpr (std::is_floating_point_v<T>) {
        const T* data = inputs[0].Data<T>();
        T* result = outputs[0].MutableData<T>();
        const int64_t count = inputs[0].ElementCount();
        for (int64_t i = 0; i < count; ++i) result[i] = static_cast<T>(function(static_cast<double>(data[i])));
      }
    });
  };
}

/// A kernel that tests each element of a floating point tensor.
template <class Predicate>
OpDef::ReferenceKernel FloatPredicateKernel(Predicate predicate) {
  return [predicate](std::span<const Tensor> inputs, const Attributes&, std::span<Tensor> outputs) {
    VisitFloatType(inputs[0].dtype(), [&](auto element) {
      const auto* data = inputs[0].Data<decltype(element)>();
      std::transform(data, data + inputs[0].ElementCount(), outputs[0].MutableData<bool>(), predicate);
    });
  };
}

/// A kernel that applies `function(x)` to each element in the element's own type; for numbers other than bool.
template <class Function>
OpDef::ReferenceKernel NumberKernel(Function function) {
  return [function](std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
    VisitElementType(inputs[0].dtype(), [&](auto element) {
      using T = decltype(element);
      if constexpr (!std::is_same_v<T, bool>) {
        const T* data = inputs[0].Data<T>();
        T* result = outputs[0].MutableData<T>();
        const int64_t count = inputs[0].ElementCount();
        const auto apply = function(T{}, attributes);
        for (int64_t i = 0; i < count; ++i) result[i] = apply(data[i]);
      }
    });
  };
}

// Integer arithmetic wraps around: it is done on unsigned values, where C++ defines that.
constexpr auto kNegative = []<class T>(T, const Attributes&) {
  return [](T x) {
    if constexpr (std::is_floating_point_v<T>) return -x;
    return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
  };
};

constexpr auto kBitwiseNot = []<class T>(T, const Attributes&) {
  return [](T x) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(~x);
    return x;  // the type rule admits integers only
  };
};

constexpr auto kAbs = []<class T>(T, const Attributes&) {
  return [](T x) {
    if constexpr (std::is_floating_point_v<T>) return std::abs(x);
    return x < T{} ? static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x)) : x;
  };
};

constexpr auto kSign = []<class T>(T, const Attributes&) { return [](T x) { return x > T{} ? T{1} : x < T{} ? static_cast<T>(-1) : x; }; };

constexpr auto kRelu = []<class T>(T, const Attributes&) { return [](T x) { return x < T{} ? T{} : x; }; };

/// The nearest value of T: bounds of clip are given as numbers, and may lie outside an integer type.
template <class T>
T Saturate(double value) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(value);
  if (value <= static_cast<double>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

constexpr auto kClip = []<class T>(T, const Attributes& attributes) {
  const T low = Saturate<T>(DoubleAttribute(attributes, "a_min", 0));
  const T high = Saturate<T>(DoubleAttribute(attributes, "a_max", 0));
  return [low, high](T x) { return x < low ? low : x > high ? high : x; };
};

constexpr auto kLeakyRelu = []<class T>(T, const Attributes& attributes) {
  const double alpha = DoubleAttribute(attributes, "alpha", 0.01);
  return [alpha](T x) { return x < T{} ? static_cast<T>(static_cast<double>(x) * alpha) : x; };
};

OpDef Elementwise(std::string name, std::string summary, OpDef::TypeRule infer_type, OpDef::ReferenceKernel reference) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .argument_names = {"data"},
          .kind = OpKind::kElementwise,
          .infer_type = std::move(infer_type),
          .work = WorkPerOutput(1),
          .reference = std::move(reference)};
}

void AddFloatFunctions(OpTable& table) {
  const auto add = [&](const char* name, const char* summary, auto function) {
    Register(table, Elementwise(name, summary, FloatType, FloatKernel(function)));
  };
  add("sigmoid", "1 / (1 + exp(-x)).", [](double x) { return 1 / (1 + std::exp(-x)); });
  add("tanh", "Hyperbolic tangent.", [](double x) { return std::tanh(x); });
  add("exp", "Natural exponential.", [](double x) { return std::exp(x); });
  add("log", "Natural logarithm.", [](double x) { return std::log(x); });
  add("sqrt", "Square root.", [](double x) { return std::sqrt(x); });
  add("rsqrt", "1 / sqrt(x).", [](double x) { return 1 / std::sqrt(x); });
  add("erf", "Error function.", [](double x) { return std::erf(x); });
  add("sin", "Sine of an angle in radians.", [](double x) { return std::sin(x); });
  add("cos", "Cosine of an angle in radians.", [](double x) { return std::cos(x); });
  add("tan", "Tangent of an angle in radians.", [](double x) { return std::tan(x); });
  add("asin", "Inverse sine, in radians.", [](double x) { return std::asin(x); });
  add("acos", "Inverse cosine, in radians.", [](double x) { return std::acos(x); });
  add("atan", "Inverse tangent, in radians.", [](double x) { return std::atan(x); });
  add("sinh", "Hyperbolic sine.", [](double x) { return std::sinh(x); });
  add("cosh", "Hyperbolic cosine.", [](double x) { return std::cosh(x); });
  add("asinh", "Inverse hyperbolic sine.", [](double x) { return std::asinh(x); });
  add("acosh", "Inverse hyperbolic cosine.", [](double x) { return std::acosh(x); });
  add("atanh", "Inverse hyperbolic tangent.", [](double x) { return std::atanh(x); });
  add("ceil", "Smallest integer not below x.", [](double x) { return std::ceil(x); });
  add("floor", "Largest integer not above x.", [](double x) { return std::floor(x); });
  add("round", "Nearest integer; halves go to the even one.", [](double x) { return std::nearbyint(x); });
}

}  // namespace

void AddElementwiseOperators(OpTable& table) {
  Register(table, Elementwise("nn.relu", "Negative elements become 0.", NumberType, NumberKernel(kRelu)));
  OpDef leaky_relu = Elementwise("nn.leaky_relu", "Negative elements are multiplied by alpha.", FloatType, NumberKernel(kLeakyRelu));
  leaky_relu.attributes = {{"alpha", "float", "slope on the negative side, default 0.01"}};
  Register(table, std::move(leaky_relu));
  OpDef clip = Elementwise("clip", "Elements below a_min become a_min, those above a_max become a_max.", ClipType, NumberKernel(kClip));
  clip.attributes = {{"a_min", "float", "lower bound", true}, {"a_max", "float", "upper bound", true}};
  clip.work = WorkPerOutput(2);
  Register(table, std::move(clip));
  AddFloatFunctions(table);
  Register(table, Elementwise("abs", "Absolute value; the smallest integer of a type is its own.", NumberType, NumberKernel(kAbs)));
  Register(table, Elementwise("negative", "Sign changed; integers wrap around.", NumberType, NumberKernel(kNegative)));
  Register(table, Elementwise("sign", "-1, 0 or 1.", NumberType, NumberKernel(kSign)));
  Register(table, Elementwise("bitwise_not", "Every bit inverted.", IntegerType, NumberKernel(kBitwiseNot)));
  Register(table, Elementwise("isnan", "True where data is NaN.", FloatPredicateType,
                              FloatPredicateKernel([](double x) { return std::isnan(x); })));
  Register(table, Elementwise("isinf", "True where data is infinite.", FloatPredicateType,
                              FloatPredicateKernel([](double x) { return std::isinf(x); })));
  Register(table, Elementwise("logical_not", "True where data is False.", BoolType,
                              [](std::span<const Tensor> inputs, const Attributes&, std::span<Tensor> outputs) {
                                const bool* data = inputs[0].Data<bool>();
                                bool* result = outputs[0].MutableData<bool>();
                                for (int64_t i = 0; i < inputs[0].ElementCount(); ++i) result[i] = !data[i];
                              }));
}

}  // namespace collage
