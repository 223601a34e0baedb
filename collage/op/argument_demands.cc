#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "collage/op/rules.h"
#include "collage/op/value_range.h"
#include "collage/tensor/narrow.h"

namespace collage {
namespace {

using Step = OpSequence::Step;
using Ranges = std::span<const ValueRange>;
/// What a step asks of all its inputs, from what its first output should lie in.
using Rule = void (*)(const Step& step, Ranges inputs, const ValueRange& wanted, std::span<ValueRange> demands);

constexpr ValueRange kUnbounded{};
// What is divided by, or taken the logarithm of: so far from zero that no quotient dwarfs the other results, next to which an error in them
// would not be seen.
constexpr ValueRange kPositive{0.25, 1};

bool IsFloat(const Step& step) { return IsFloatingPoint(FlattenTensors(step.result_type)[0].dtype); }

ValueRange OrUnbounded(const ValueRange& range) { return range.low <= range.high ? range : kUnbounded; }

/// f(wanted) where f is increasing and wanted is not negative; nothing where it may be.
template <class Function>
ValueRange IfPositive(const ValueRange& wanted, Function function) {
  if (!wanted.IsBounded() || wanted.low < 0) return kUnbounded;
  return {function(wanted.low), function(wanted.high)};
}

void PassOn(const Step&, Ranges, const ValueRange& wanted, std::span<ValueRange> demands) {
  std::fill(demands.begin(), demands.end(), wanted);
}
void PassOnChoice(const Step&, Ranges, const ValueRange& wanted, std::span<ValueRange> demands) { demands[1] = demands[2] = wanted; }
void PassOnFirst(const Step&, Ranges, const ValueRange& wanted, std::span<ValueRange> demands) { demands[0] = wanted; }

void Negative(const Step&, Ranges, const ValueRange& wanted, std::span<ValueRange> demands) { demands[0] = {-wanted.high, -wanted.low}; }
void Abs(const Step&, Ranges, const ValueRange& wanted, std::span<ValueRange> demands) {
  demands[0] = IfPositive(wanted, [](double x) { return x; });
}
void Exp(const Step&, Ranges, const ValueRange& wanted, std::span<ValueRange> demands) {
  if (wanted.low > 0) demands[0] = IfPositive(wanted, [](double x) { return std::log(x); });
}
void Log(const Step&, Ranges, const ValueRange& wanted, std::span<ValueRange> demands) {
  demands[0] = wanted.IsBounded() ? ValueRange{std::exp(wanted.low), std::exp(wanted.high)} : kPositive;
}
void Sqrt(const Step&, Ranges, const ValueRange& wanted, std::span<ValueRange> demands) {
  const ValueRange squares = IfPositive(wanted, [](double x) { return x * x; });
  demands[0] = squares.IsBounded() ? squares : kPositive;
}
void ReciprocalSqrt(const Step&, Ranges, const ValueRange& wanted, std::span<ValueRange> demands) {
  const bool is_positive = wanted.IsBounded() && wanted.low > 0;
  demands[0] = is_positive ? ValueRange{1 / (wanted.high * wanted.high), 1 / (wanted.low * wanted.low)} : kPositive;
}

void Add(const Step&, Ranges inputs, const ValueRange& wanted, std::span<ValueRange> demands) {
  for (size_t i = 0; i < 2; ++i) {
    const ValueRange& other = inputs[1 - i];
    const ValueRange half{wanted.low / 2, wanted.high / 2};
    demands[i] = other.IsBounded() ? OrUnbounded({wanted.low - other.low, wanted.high - other.high}) : half;
  }
}
void Subtract(const Step&, Ranges inputs, const ValueRange& wanted, std::span<ValueRange> demands) {
  const double middle = (wanted.low + wanted.high) / 2;
  const double quarter = (wanted.high - wanted.low) / 4;
  const bool is_wanted = wanted.IsBounded();
  const ValueRange near_middle = is_wanted ? ValueRange{middle - quarter, middle + quarter} : kUnbounded;
  const ValueRange near_zero = is_wanted ? ValueRange{-quarter, quarter} : kUnbounded;
  demands[0] = inputs[1].IsBounded() ? OrUnbounded({wanted.low + inputs[1].high, wanted.high + inputs[1].low}) : near_middle;
  demands[1] = inputs[0].IsBounded() ? OrUnbounded({inputs[0].high - wanted.high, inputs[0].low - wanted.low}) : near_zero;
}
/// x with x * factor in `wanted` for every factor of one sign.
ValueRange Unscaled(const ValueRange& wanted, const ValueRange& factor) {
  if (!wanted.IsBounded()) return kUnbounded;
  if (factor.high < 0) return Unscaled({-wanted.high, -wanted.low}, {-factor.high, -factor.low});
  if (factor.low <= 0) return kUnbounded;
  const double low = std::max(wanted.low / factor.low, wanted.low / factor.high);
  return OrUnbounded({low, std::min(wanted.high / factor.low, wanted.high / factor.high)});
}
void Multiply(const Step&, Ranges inputs, const ValueRange& wanted, std::span<ValueRange> demands) {
  for (size_t i = 0; i < 2; ++i) {
    const ValueRange& other = inputs[1 - i];
    demands[i] = other.IsBounded() ? Unscaled(wanted, other) : IfPositive(wanted, [](double x) { return std::sqrt(x); });
  }
}
void Divide(const Step& step, Ranges inputs, const ValueRange& wanted, std::span<ValueRange> demands) {
  if (!IsFloat(step)) return;
  const ValueRange& divisor = inputs[1].IsBounded() ? inputs[1] : kPositive;
  demands[1] = kPositive;
  if (divisor.low > 0 && wanted.IsBounded()) demands[0] = OrUnbounded({wanted.low * divisor.high, wanted.high * divisor.low});
}
void FloorMod(const Step& step, Ranges, const ValueRange&, std::span<ValueRange> demands) {
  if (IsFloat(step)) demands[1] = kPositive;
}
void Power(const Step& step, Ranges inputs, const ValueRange& wanted, std::span<ValueRange> demands) {
  if (!IsFloat(step)) return;
  const ValueRange& exponent = inputs[1];
  const bool is_point = exponent.low == exponent.high && exponent.low > 0;
  const double root = is_point ? 1 / exponent.low : 1;
  if (is_point) demands[0] = IfPositive(wanted, [root](double x) { return std::pow(x, root); });
  const bool is_whole = is_point && exponent.low == std::floor(exponent.low);
  if (!demands[0].IsBounded() && !is_whole) demands[0] = kPositive;
}

void Sum(const Step& step, Ranges, const ValueRange& wanted, std::span<ValueRange> demands) {
  const double count = std::max(1.0, ElementCount(step.argument_types[0])) / std::max(1.0, ElementCount(step.result_type));
  demands[0] = {wanted.low / count, wanted.high / count};
}
void BatchNorm(const Step&, Ranges, const ValueRange&, std::span<ValueRange> demands) { demands[4] = kPositive; }
void Clip(const Step& step, Ranges, const ValueRange& wanted, std::span<ValueRange> demands) {
  const double low = DoubleAttribute(step.attributes, "a_min", 0);
  const double high = DoubleAttribute(step.attributes, "a_max", 0);
  demands[0] = OrUnbounded({std::max(low, wanted.low), std::min(high, wanted.high)});
  if (!wanted.IsBounded()) demands[0] = kUnbounded;
}

void Take(const Step& step, Ranges, const ValueRange& wanted, std::span<ValueRange> demands) {
  const TensorType& data = *step.argument_types[0].AsTensor();
  const int64_t extent = HasAttribute(step.attributes, "axis") ? data.shape[AxisAttribute(step.attributes, "axis", 0, data.shape.size())]
                                                               : data.ElementCount();
  demands[0] = wanted;
  demands[1] = {0, static_cast<double>(std::max<int64_t>(1, extent) - 1)};
}
void GatherNd(const Step& step, Ranges, const ValueRange& wanted, std::span<ValueRange> demands) {
  const Shape& data = step.argument_types[0].AsTensor()->shape;
  const auto batch = static_cast<size_t>(IntAttribute(step.attributes, "batch_dims", 0));
  const auto depth = static_cast<size_t>(step.argument_types[1].AsTensor()->shape[0]);
  // One range for all coordinates: that of the smallest extent.
  int64_t extent = std::numeric_limits<int64_t>::max();
  for (size_t i = batch; i < batch + depth; ++i) extent = std::min(extent, data[i]);
  demands[0] = wanted;
  demands[1] = {0, static_cast<double>(std::max<int64_t>(1, extent) - 1)};
}

/// Where they are defined, and no steeper than other operators.
void InverseCosh(const Step&, Ranges, const ValueRange&, std::span<ValueRange> demands) { demands[0] = {1.25, 2}; }
void InverseTanh(const Step&, Ranges, const ValueRange&, std::span<ValueRange> demands) { demands[0] = {-0.75, 0.75}; }

/// gather and scatter_elements: indices along one axis.
void GatherElements(const Step& step, Ranges, const ValueRange& wanted, std::span<ValueRange> demands) {
  const Shape& data = step.argument_types[0].AsTensor()->shape;
  const int64_t extent = data[AxisAttribute(step.attributes, "axis", 0, data.size())];
  demands[0] = wanted;
  demands[1] = {0, static_cast<double>(std::max<int64_t>(1, extent) - 1)};
}
void OneHot(const Step& step, Ranges, const ValueRange&, std::span<ValueRange> demands) {
  demands[0] = {0, static_cast<double>(std::max<int64_t>(1, IntAttribute(step.attributes, "depth", 1)) - 1)};
}
/// Of each element of a batch, its first so many steps along the axis of time. None at all would leave nothing to compare.
ValueRange Lengths(const Step& step, size_t axis) {
  return {1, static_cast<double>(std::max<int64_t>(1, step.argument_types[0].AsTensor()->shape[axis]))};
}
void Recurrent(const Step& step, Ranges, const ValueRange&, std::span<ValueRange> demands) { demands[4] = Lengths(step, 0); }
void ReverseSequence(const Step& step, Ranges, const ValueRange& wanted, std::span<ValueRange> demands) {
  const size_t rank = step.argument_types[0].AsTensor()->shape.size();
  demands[0] = wanted;
  demands[1] = Lengths(step, AxisAttribute(step.attributes, "seq_axis", 1, rank));
}
/// Scales are positive.
void Quantise(const Step&, Ranges, const ValueRange&, std::span<ValueRange> demands) { demands[1] = kPositive; }

/// All numbers of a type of one byte, which is what models quantise to: sums of few and small ones would not show where code saturates.
ValueRange WholeByte(const Step& step) {
  const DType dtype = step.argument_types[0].AsTensor()->dtype;
  if (dtype != DType::kInt8 && dtype != DType::kUInt8) return kUnbounded;
  const IntegerLimits limits = LimitsOfInteger(dtype);
  return {static_cast<double>(limits.low), static_cast<double>(limits.high)};
}
void Dequantise(const Step& step, Ranges, const ValueRange&, std::span<ValueRange> demands) {
  demands[0] = WholeByte(step);
  demands[1] = kPositive;
}
void Cast(const Step& step, Ranges, const ValueRange& wanted, std::span<ValueRange> demands) {
  demands[0] = wanted.IsBounded() ? wanted : WholeByte(step);
}

const std::unordered_map<std::string_view, Rule>& Rules() {
  static const std::unordered_map<std::string_view, Rule> rules = [] {
    std::unordered_map<std::string_view, Rule> table{{"negative", Negative},
                                                     {"abs", Abs},
                                                     {"exp", Exp},
                                                     {"log", Log},
                                                     {"sqrt", Sqrt},
                                                     {"rsqrt", ReciprocalSqrt},
                                                     {"add", Add},
                                                     {"nn.bias_add", Add},
                                                     {"subtract", Subtract},
                                                     {"multiply", Multiply},
                                                     {"divide", Divide},
                                                     {"floor_mod", FloorMod},
                                                     {"power", Power},
                                                     {"sum", Sum},
                                                     {"nn.batch_norm", BatchNorm},
                                                     {"clip", Clip},
                                                     {"take", Take},
                                                     {"gather_nd", GatherNd},
                                                     {"gather", GatherElements},
                                                     {"scatter_elements", GatherElements},
                                                     {"one_hot", OneHot},
                                                     {"nn.rnn", Recurrent},
                                                     {"nn.gru", Recurrent},
                                                     {"nn.lstm", Recurrent},
                                                     {"qnn.lstm", Recurrent},
                                                     {"reverse_sequence", ReverseSequence},
                                                     {"cast", Cast},
                                                     {"qnn.quantize", Quantise},
                                                     {"qnn.dequantize", Dequantise},
                                                     {"acosh", InverseCosh},
                                                     {"atanh", InverseTanh},
                                                     {"where", PassOnChoice},
                                                     {"nn.prelu", PassOnFirst}};
    // Besides what chooses, moves or averages elements: what hardly changes positive numbers of about one.
    for (const char* name : {"nn.avg_pool3d", "nn.avg_pool2d", "nn.relu", "nn.leaky_relu", "tanh", "sin", "erf", "ceil", "floor", "round"})
      table[name] = PassOn;
    return table;
  }();
  return rules;
}

}  // namespace

std::vector<ValueRange> ArgumentDemands(const OpSequence::Step& step, std::span<const ValueRange> inputs,
                                        std::span<const ValueRange> wanted) {
  std::vector<ValueRange> demands(inputs.size());
  const auto rule = Rules().find(step.op->name);
  if (rule != Rules().end()) {
    rule->second(step, inputs, wanted[0], demands);
  } else if (step.op->is_within_arguments) {
    PassOn(step, inputs, wanted[0], demands);
  }
  return demands;
}

}  // namespace collage
