#include "collage/op/value_range.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "collage/op/col2im.h"
#include "collage/op/rules.h"
#include "collage/tensor/narrow.h"

namespace collage {
namespace {

using Step = OpSequence::Step;
using Ranges = std::span<const ValueRange>;
/// The range of every output, where no input is unbounded.
using Rule = ValueRange (*)(const Step& step, Ranges inputs);

constexpr ValueRange kUnbounded{};

ValueRange Hull(const ValueRange& a, const ValueRange& b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }
ValueRange Around(double magnitude) { return {-magnitude, magnitude}; }

/// Of a function of two numbers that takes its extremes at the ends of both ranges.
template <class Function>
ValueRange OfCorners(const ValueRange& a, const ValueRange& b, Function function) {
  const auto [low, high] =
      std::minmax({function(a.low, b.low), function(a.low, b.high), function(a.high, b.low), function(a.high, b.high)});
  return {low, high};
}

template <double (*kFunction)(double)>
ValueRange Increasing(const Step&, Ranges inputs) {
  return {kFunction(inputs[0].low), kFunction(inputs[0].high)};
}

template <int kLow, int kHigh>
ValueRange Within(const Step&, Ranges) {
  return {kLow, kHigh};
}

ValueRange HullOfAll(const Step&, Ranges inputs) {
  ValueRange hull = inputs[0];
  for (const ValueRange& input : inputs) hull = Hull(hull, input);
  return hull;
}
ValueRange OfFirst(const Step&, Ranges inputs) { return inputs[0]; }
ValueRange OfFirstOrZero(const Step&, Ranges inputs) { return Hull(inputs[0], {0, 0}); }
ValueRange OfChoice(const Step&, Ranges inputs) { return Hull(inputs[1], inputs[2]); }
ValueRange Counts(const Step&, Ranges) { return {0, 0x1p40}; }  // no tensor has more elements

bool IsFloat(const Step& step) { return IsFloatingPoint(FlattenTensors(step.result_type)[0].dtype); }

ValueRange Cast(const Step& step, Ranges inputs) {
  if (IsFloat(step)) return inputs[0];
  if (FlattenTensors(step.result_type)[0].dtype == DType::kBool) return {0, 1};
  return {std::trunc(inputs[0].low), std::trunc(inputs[0].high)};
}

ValueRange Sqrt(const Step&, Ranges inputs) {
  return inputs[0].low >= 0 ? ValueRange{std::sqrt(inputs[0].low), std::sqrt(inputs[0].high)} : kUnbounded;
}
ValueRange ReciprocalSqrt(const Step&, Ranges inputs) {
  return inputs[0].low > 0 ? ValueRange{1 / std::sqrt(inputs[0].high), 1 / std::sqrt(inputs[0].low)} : kUnbounded;
}
ValueRange Log(const Step&, Ranges inputs) {
  return inputs[0].low > 0 ? ValueRange{std::log(inputs[0].low), std::log(inputs[0].high)} : kUnbounded;
}
ValueRange LimitsOf(DType dtype) {
  if (dtype == DType::kString) return kUnbounded;
  if (IsFloatingPoint(dtype)) return Around(GreatestFinite(dtype));
  const IntegerLimits limits = LimitsOfInteger(dtype);
  return {static_cast<double>(limits.low), static_cast<double>(limits.high)};
}

ValueRange Quantised(const Step& step, Ranges) { return LimitsOf(FlattenTensors(step.result_type)[0].dtype); }
ValueRange Dequantised(const Step&, Ranges inputs) {
  const ValueRange distance{inputs[0].low - inputs[2].high, inputs[0].high - inputs[2].low};
  return OfCorners(distance, inputs[1], std::multiplies<>());
}

ValueRange Relu(const Step&, Ranges inputs) { return {std::max(0.0, inputs[0].low), std::max(0.0, inputs[0].high)}; }
ValueRange LeakyRelu(const Step& step, Ranges inputs) {
  const double alpha = DoubleAttribute(step.attributes, "alpha", 0.01);
  return Hull(Relu(step, inputs),
              OfCorners({std::min(0.0, inputs[0].low), std::min(0.0, inputs[0].high)}, {alpha, alpha}, std::multiplies<>()));
}
ValueRange Clip(const Step& step, Ranges inputs) {
  const double low = DoubleAttribute(step.attributes, "a_min", 0);
  const double high = DoubleAttribute(step.attributes, "a_max", 0);
  return {std::clamp(inputs[0].low, low, high), std::clamp(inputs[0].high, low, high)};
}
ValueRange Negative(const Step&, Ranges inputs) { return {-inputs[0].high, -inputs[0].low}; }
ValueRange Abs(const Step&, Ranges inputs) {
  const ValueRange& x = inputs[0];
  const bool has_zero = x.low <= 0 && x.high >= 0;
  return {has_zero ? 0 : std::min(std::abs(x.low), std::abs(x.high)), x.Magnitude()};
}

ValueRange Add(const Step&, Ranges inputs) { return {inputs[0].low + inputs[1].low, inputs[0].high + inputs[1].high}; }
ValueRange Subtract(const Step&, Ranges inputs) { return {inputs[0].low - inputs[1].high, inputs[0].high - inputs[1].low}; }
ValueRange Multiply(const Step& step, Ranges inputs) {
  const ValueRange product = OfCorners(inputs[0], inputs[1], std::multiplies<>());
  const bool is_square = step.inputs[0] == step.inputs[1];
  return is_square ? ValueRange{std::max(0.0, product.low), product.high} : product;
}
ValueRange Divide(const Step& step, Ranges inputs) {
  if (!IsFloat(step)) return Around(inputs[0].Magnitude());  // the divisor is at least one, or the result zero
  if (inputs[1].low <= 0 && inputs[1].high >= 0) return kUnbounded;
  return OfCorners(inputs[0], inputs[1], std::divides<>());
}
ValueRange FloorMod(const Step& step, Ranges inputs) {
  const ValueRange& divisor = inputs[1];
  if (IsFloat(step) && divisor.low <= 0 && divisor.high >= 0) return kUnbounded;
  return Hull(divisor, {0, 0});
}
ValueRange Maximum(const Step&, Ranges inputs) {
  return {std::max(inputs[0].low, inputs[1].low), std::max(inputs[0].high, inputs[1].high)};
}
ValueRange Minimum(const Step&, Ranges inputs) {
  return {std::min(inputs[0].low, inputs[1].low), std::min(inputs[0].high, inputs[1].high)};
}
ValueRange Prelu(const Step&, Ranges inputs) {
  const ValueRange negative{std::min(0.0, inputs[0].low), std::min(0.0, inputs[0].high)};
  return Hull({std::max(0.0, inputs[0].low), std::max(0.0, inputs[0].high)}, OfCorners(negative, inputs[1], std::multiplies<>()));
}

/// The exponent where it is one whole number of at least zero.
std::optional<double> WholeExponent(const ValueRange& exponent) {
  const bool is_whole = exponent.low == exponent.high && exponent.low >= 0 && exponent.low == std::floor(exponent.low);
  return is_whole ? std::optional(exponent.low) : std::nullopt;
}

ValueRange Power(const Step& step, Ranges inputs) {
  const ValueRange& base = inputs[0];
  if (!IsFloat(step)) return kUnbounded;  // which stands for all integers of the type
  const auto power = [](double x, double y) { return std::pow(x, y); };
  if (const std::optional<double> exponent = WholeExponent(inputs[1])) {
    const bool is_even = std::fmod(*exponent, 2) == 0;
    const ValueRange corners = OfCorners(base, inputs[1], power);
    return is_even && base.low < 0 && base.high > 0 ? Hull(corners, {0, 0}) : corners;
  }
  return base.low > 0 ? OfCorners(base, inputs[1], power) : kUnbounded;
}

double ElementCountOf(const Type& type) { return ElementCount(type); }

/// An output is a sum of at most as many products as the second operand has elements.
ValueRange Products(const Step& step, Ranges inputs) {
  return Around(inputs[0].Magnitude() * inputs[1].Magnitude() * ElementCountOf(step.argument_types[1]));
}
double ElementsOfEach(const Step& step) { return ElementCountOf(step.argument_types[0]) / std::max(1.0, ElementCountOf(step.result_type)); }
ValueRange Sum(const Step& step, Ranges inputs) {
  const double count = ElementsOfEach(step);
  return {count * inputs[0].low, count * inputs[0].high};
}
/// An element is a sum of at most one of each place in a block.
ValueRange OfBlocks(const Step& step, Ranges inputs) {
  const auto taps = static_cast<double>(ReadCol2Im(*step.argument_types[0].AsTensor(), step.attributes)->Taps());
  return {taps * std::min(0.0, inputs[0].low), taps * std::max(0.0, inputs[0].high)};
}
ValueRange Prod(const Step& step, Ranges inputs) {
  const double count = ElementsOfEach(step);
  const ValueRange& x = inputs[0];
  if (x.low >= 0) return {std::pow(x.low, count), std::pow(x.high, count)};
  return Around(std::max(1.0, std::pow(x.Magnitude(), count)));
}

/// gamma * x + beta for |x| up to `magnitude`.
ValueRange Scaled(double magnitude, Ranges inputs) { return Around(magnitude * inputs[1].Magnitude() + inputs[2].Magnitude()); }

/// No element is further from the mean of n than sqrt(n) standard deviations.
ValueRange Normalised(const Step& step, Ranges inputs) {
  if (DoubleAttribute(step.attributes, "epsilon", 1e-5) <= 0) return kUnbounded;
  const ValueRange scaled = Scaled(std::sqrt(ElementCountOf(step.argument_types[0])), inputs);
  return BoolAttribute(step.attributes, "scale", true) ? scaled
                                                       : Around(scaled.Magnitude() + std::sqrt(ElementCountOf(step.argument_types[0])));
}
ValueRange BatchNorm(const Step& step, Ranges inputs) {
  const double least = inputs[4].low + DoubleAttribute(step.attributes, "epsilon", 1e-5);
  if (least <= 0) return kUnbounded;
  const double normalised = (inputs[0].Magnitude() + inputs[3].Magnitude()) / std::sqrt(least);
  const ValueRange scaled = Scaled(normalised, inputs);
  // The statistics come out too.
  return Hull(Around(scaled.Magnitude() + normalised), Hull(inputs[3], inputs[4]));
}
ValueRange Lrn(const Step& step, Ranges inputs) {
  const double bias = DoubleAttribute(step.attributes, "bias", 2);
  const double beta = DoubleAttribute(step.attributes, "beta", 0.75);
  if (bias <= 0 || beta < 0 || DoubleAttribute(step.attributes, "alpha", 1e-5) < 0) return kUnbounded;
  return Around(inputs[0].Magnitude() / std::pow(bias, beta));
}
ValueRange LogSoftmax(const Step& step, Ranges inputs) {
  return {inputs[0].low - inputs[0].high - std::log(std::max(1.0, ElementCountOf(step.argument_types[0]))), 0};
}

const std::unordered_map<std::string_view, Rule>& Rules() {
  static const std::unordered_map<std::string_view, Rule> rules = [] {
    std::unordered_map<std::string_view, Rule> table{{"nn.relu", Relu},
                                                     {"nn.leaky_relu", LeakyRelu},
                                                     {"clip", Clip},
                                                     {"negative", Negative},
                                                     {"abs", Abs},
                                                     {"exp", Increasing<std::exp>},
                                                     {"ceil", Increasing<std::ceil>},
                                                     {"floor", Increasing<std::floor>},
                                                     {"round", Increasing<std::nearbyint>},
                                                     {"log", Log},
                                                     {"sqrt", Sqrt},
                                                     {"rsqrt", ReciprocalSqrt},
                                                     {"sigmoid", Within<0, 1>},
                                                     {"nn.softmax", Within<0, 1>},
                                                     {"nn.log_softmax", LogSoftmax},
                                                     {"add", Add},
                                                     {"nn.bias_add", Add},
                                                     {"subtract", Subtract},
                                                     {"multiply", Multiply},
                                                     {"divide", Divide},
                                                     {"floor_mod", FloorMod},
                                                     {"power", Power},
                                                     {"maximum", Maximum},
                                                     {"minimum", Minimum},
                                                     {"nn.prelu", Prelu},
                                                     {"where", OfChoice},
                                                     {"take", OfFirst},
                                                     {"gather_nd", OfFirst},
                                                     {"cast", Cast},
                                                     {"qnn.quantize", Quantised},
                                                     {"qnn.dequantize", Dequantised},
                                                     {"nn.avg_pool2d", OfFirstOrZero},
                                                     {"sum", Sum},
                                                     {"prod", Prod},
                                                     {"nn.col2im", OfBlocks},
                                                     {"nn.layer_norm", Normalised},
                                                     {"nn.instance_norm", Normalised},
                                                     {"nn.group_norm", Normalised},
                                                     {"nn.batch_norm", BatchNorm},
                                                     {"nn.lrn", Lrn}};
    for (const char* name : {"tanh", "erf", "sin", "cos", "sign"}) table[name] = Within<-1, 1>;
    for (const char* name : {"logical_not", "logical_and", "logical_or", "equal", "not_equal", "greater", "greater_equal", "less",
                             "less_equal", "zeros", "ones", "zeros_like", "ones_like"})
      table[name] = Within<0, 1>;
    for (const char* name : {"argmax", "argmin", "shape_of"}) table[name] = Counts;
    for (const char* name : {"nn.conv2d", "nn.conv2d_transpose", "nn.dense", "nn.matmul", "nn.batch_matmul"}) table[name] = Products;
    return table;
  }();
  return rules;
}

/// Null for an operator of which nothing is known.
Rule RuleOf(const OpDef& op) {
  const auto rule = Rules().find(op.name);
  if (rule != Rules().end()) return rule->second;
  return op.is_within_arguments ? HullOfAll : nullptr;
}

/// Floating point beyond the limits is infinite; integers are finite whatever happens.
ValueRange Limited(const ValueRange& range, DType dtype) {
  const ValueRange limits = LimitsOf(dtype);
  const bool is_inside = range.low >= limits.low && range.high <= limits.high;  // false for NaN
  return is_inside ? range : IsFloatingPoint(dtype) ? kUnbounded : limits;
}

}  // namespace

bool ValueRange::IsBounded() const { return std::isfinite(low) && std::isfinite(high); }
double ValueRange::Magnitude() const { return std::max(std::abs(low), std::abs(high)); }

ValueRange RangeOf(const Tensor& tensor) {
  if (tensor.ElementCount() == 0) return {0, 0};
  if (tensor.dtype() == DType::kString) return kUnbounded;
  const auto of_values = [](const auto& values) -> ValueRange {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    bool is_finite = true;
    for (const auto value : values) {
      const auto wide = static_cast<double>(value);
      low = std::min(low, wide);
      high = std::max(high, wide);
      is_finite &= wide - wide == 0;
    }
    return is_finite ? ValueRange{low, high} : kUnbounded;
  };
  ValueRange range;
  const bool has_element_type =
      VisitElementType(tensor.dtype(), [&](auto element) { range = of_values(tensor.Values<decltype(element)>()); });
  return has_element_type ? range : of_values(tensor.ToDouble());
}

std::vector<ValueRange> ResultRanges(const OpSequence::Step& step, std::span<const ValueRange> inputs) {
  const Rule rule = RuleOf(*step.op);
  const bool is_known = rule != nullptr && std::all_of(inputs.begin(), inputs.end(), [](const ValueRange& x) { return x.IsBounded(); });
  const ValueRange range = is_known ? rule(step, inputs) : kUnbounded;
  std::vector<ValueRange> results;
  for (const TensorType& type : FlattenTensors(step.result_type)) results.push_back(Limited(range, type.dtype));
  return results;
}

}  // namespace collage
