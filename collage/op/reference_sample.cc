#include "collage/op/reference_sample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>

#include "collage/ir/op_sequence.h"
#include "collage/ir/permitted_precision.h"
#include "collage/ir/visit.h"
#include "collage/op/quantisation_steps.h"
#include "collage/op/value_range.h"
#include "collage/support/hash.h"
#include "collage/tensor/narrow.h"
#include "collage/tensor/strings.h"

namespace collage {
namespace {

// What floating point parameters hold of which no operator asks for more, in the order in which it is tried. After numbers of both signs
// positive ones, for what needs them in a way that intervals do not show; then ever smaller ones, for weights so large that values
// overflow.
constexpr ValueRange kNumbers[] = {{-1, 1},
                                   {0.25, 1},
                                   {0.75, 1.25},
                                   {-1, -0.25},
                                   {-0x1p-6, 0x1p-6},
                                   {-0x1p-16, 0x1p-16},
                                   {-0x1p-32, 0x1p-32},
                                   {-0x1p-48, 0x1p-48},
                                   {-0x1p-64, 0x1p-64}};
// The same of integers of which no operator asks for less. Many are masks, which models take from one and multiply by the lowest number
// that there is: all but zeros and ones overflow, and where all are zero, softmax is left with nothing.
constexpr ValueRange kIntegers{0, 7};
constexpr ValueRange kMasks{0, 1};
constexpr ValueRange kOnes{1, 1};
// All choices are tried for a function of less work than this together, which is some five seconds of the reference executor's
// convolutions. Of larger ones fewer are, but always three, and all of integers.
constexpr double kMostTriedFlops = 1e11;
constexpr size_t kTriedInAnyCase = 3;

/// The numbers that a quantiser to bytes tells apart, where its scale is known.
std::optional<ValueRange> RangeOfBytes(const OpSequence& sequence, const OpSequence::Step& step) {
  const DType dtype = sequence.values[step.outputs[0]].type.dtype;
  const std::optional<Tensor>& scales = sequence.values[step.inputs[1]].constant;
  const std::optional<Tensor>& zeros = sequence.values[step.inputs[2]].constant;
  if (!scales || !zeros || (dtype != DType::kUInt8 && dtype != DType::kInt8)) return std::nullopt;
  const IntegerLimits limits = LimitsOfInteger(dtype);
  ValueRange range{0, 0};
  for (const double scale : scales->ToDouble()) {
    for (const double zero : zeros->ToDouble()) {
      range.low = std::min(range.low, (static_cast<double>(limits.low) - zero) * scale);
      range.high = std::max(range.high, (static_cast<double>(limits.high) - zero) * scale);
    }
  }
  return range.IsBounded() ? std::optional(range) : std::nullopt;
}

/// What the operators of a function ask of its parameters, and what can be shown without running it.
class Analysis {
 public:
  explicit Analysis(OpSequence sequence) : sequence_(std::move(sequence)), ranges_(sequence_.values.size()) {
    for (size_t i = 0; i < ranges_.size(); ++i) {
      if (sequence_.values[i].constant) ranges_[i] = RangeOf(*sequence_.values[i].constant);
    }
    FindDemands();
  }

  /// Of a parameter's tensor; unbounded where nothing is asked.
  [[nodiscard]] const ValueRange& Demand(size_t parameter) const { return demands_[sequence_.parameters[parameter]]; }

  /// Of a parameter's tensor: what a quantiser behind it tells apart. Only all of that shows where code for integers saturates.
  [[nodiscard]] const std::optional<ValueRange>& Quantised(size_t parameter) const { return quantised_[sequence_.parameters[parameter]]; }

  /// True where every value of every operator is finite when parameters lie in these ranges.
  [[nodiscard]] bool IsFinite(const std::vector<ValueRange>& parameters) const {
    std::vector<ValueRange> ranges = ranges_;
    for (size_t i = 0; i < parameters.size(); ++i) ranges[sequence_.parameters[i]] = parameters[i];
    for (const OpSequence::Step& step : sequence_.steps) {
      const std::vector<ValueRange> results = ResultRanges(step, Select(ranges, step.inputs));
      for (size_t i = 0; i < results.size(); ++i) {
        if (!results[i].IsBounded()) return false;
        ranges[step.outputs[i]] = results[i];
      }
    }
    return true;
  }

  [[nodiscard]] const OpSequence& sequence() const { return sequence_; }

  [[nodiscard]] double Flops() const {
    double flops = 0;
    for (const OpSequence::Step& step : sequence_.steps)
      flops += step.op->work(step.argument_types, step.result_type, step.attributes).flops;
    return flops;
  }

 private:
  static std::vector<ValueRange> Select(const std::vector<ValueRange>& ranges, const std::vector<size_t>& indices) {
    std::vector<ValueRange> selected;
    for (size_t index : indices) selected.push_back(ranges[index]);
    return selected;
  }

  void FindDemands() {
    demands_.resize(ranges_.size());
    quantised_.resize(ranges_.size());
    for (auto step = sequence_.steps.rbegin(); step != sequence_.steps.rend(); ++step) {
      if (step->op->name == "qnn.quantize") {
        quantised_[step->inputs[0]] = RangeOfBytes(sequence_, *step);
      } else if (step->op->is_within_arguments && quantised_[step->outputs[0]]) {
        quantised_[step->inputs[0]] = quantised_[step->outputs[0]];
      }
      const std::vector<ValueRange> asked = ArgumentDemands(*step, Select(ranges_, step->inputs), Select(demands_, step->outputs));
      for (size_t i = 0; i < asked.size(); ++i) {
        ValueRange& demand = demands_[step->inputs[i]];
        const ValueRange both{std::max(demand.low, asked[i].low), std::min(demand.high, asked[i].high)};
        // Users that want different things: the one nearest to the results has its way, and running tells.
        if (both.low <= both.high) demand = both;
      }
    }
  }

  OpSequence sequence_;
  std::vector<ValueRange> ranges_;  // of constants; the others are unbounded
  std::vector<ValueRange> demands_;
  std::vector<std::optional<ValueRange>> quantised_;
};

/// Whole numbers in [low, high], as far as the type holds them.
void FillWhole(Tensor& tensor, uint64_t seed, const ValueRange& range) {
  const auto [least, most] = LimitsOfInteger(tensor.dtype());
  const auto held = [least = static_cast<double>(least), most = static_cast<double>(most)](double x) { return std::clamp(x, least, most); };
  const double low = held(std::ceil(range.low));
  const auto count = static_cast<uint64_t>(std::max(1.0, held(std::floor(range.high)) - low + 1));
  Tensor wide = IsNarrow(tensor.dtype()) ? Tensor(TensorType{tensor.shape(), WideType(tensor.dtype())}) : tensor;
  VisitElementType(wide.dtype(), [&](auto element) {
    using T = decltype(element);
    T* data = wide.MutableData<T>();
    for (int64_t i = 0; i < wide.ElementCount(); ++i) {
      data[i] = static_cast<T>(low + static_cast<double>(HashCombine(seed, static_cast<uint64_t>(i)) % count));
    }
  });
  if (IsNarrow(tensor.dtype())) Narrow(wide, tensor);
}

/// What operators on strings tell apart: letters of both cases, numbers, nothing at all; and what the function compares with.
std::vector<std::string> WordsFor(const Expr& function) {
  std::set<std::string> words = {"", "a", "Bee", "7", "-0.5"};
  PostOrder(function, [&](const Expr& expr) {
    const Constant* constant = expr->As<Constant>();
    if (!constant || constant->value.dtype() != DType::kString) return;
    for (std::string& text : StringsOf(constant->value)) words.insert(std::move(text));
  });
  return {words.begin(), words.end()};
}

void FillWords(Tensor& tensor, uint64_t seed, const std::vector<std::string>& words) {
  auto* numbers = tensor.MutableData<uint64_t>();
  for (int64_t i = 0; i < tensor.ElementCount(); ++i)
    numbers[i] = NumberOfString(words[HashCombine(seed, static_cast<uint64_t>(i)) % words.size()]);
}

/// What of `choice` is in `demand`; where nothing is, what of `demand` is nearest to it, over a length of one.
ValueRange Within(const ValueRange& demand, const ValueRange& choice) {
  const ValueRange both{std::max(demand.low, choice.low), std::min(demand.high, choice.high)};
  if (both.low <= both.high) return both;
  return demand.low > choice.high ? ValueRange{demand.low, std::min(demand.high, demand.low + 1)}
                                  : ValueRange{std::max(demand.low, demand.high - 1), demand.high};
}

/// As `choice` is to [-1, 1], so is this to `whole`.
ValueRange Scaled(const ValueRange& choice, const ValueRange& whole) {
  const double middle = (whole.low + whole.high) / 2;
  const double half = (whole.high - whole.low) / 2;
  return {middle + choice.low * half, middle + choice.high * half};
}

struct Finiteness {
  bool has_elements = false;
  bool has_finite = false;
  bool has_nan = false;
  bool has_infinite = false;
};

/// Of elements of IEEE 754 as unsigned integers of their size: without the sign what is infinite is `infinity`, what is more is NaN.
/// Without a branch, because every tensor of every run is looked at: with branches that took as long as the products did.
template <class Element, class Bits>
Finiteness FinitenessOf(std::span<const Element> elements, Bits infinity) {
  constexpr Bits kWithoutSign = std::numeric_limits<Bits>::max() >> 1;
  Bits finite = 0;
  Bits infinite = 0;
  Bits nan = 0;
  for (const Element element : elements) {
    const auto magnitude = static_cast<Bits>(std::bit_cast<Bits>(element) & kWithoutSign);
    finite |= static_cast<Bits>(magnitude < infinity);
    infinite |= static_cast<Bits>(magnitude == infinity);
    nan |= static_cast<Bits>(magnitude > infinity);
  }
  return {!elements.empty(), finite != 0, nan != 0, infinite != 0};
}

/// Of all floating point elements.
Finiteness FinitenessOf(const Tensor& tensor) {
  if (!IsFloatingPoint(tensor.dtype())) return {};
  switch (tensor.dtype()) {
    case DType::kFloat64:
      return FinitenessOf(tensor.Values<double>(), uint64_t{0x7ff} << 52);
    case DType::kFloat16:
      return FinitenessOf(tensor.Values<uint16_t>(), uint16_t{0x7c00});
    case DType::kBFloat16:
      return FinitenessOf(tensor.Values<uint16_t>(), uint16_t{0x7f80});
    default:  // float32, and what is widened to it
      return FinitenessOf(Widened(tensor).Values<float>(), uint32_t{0xff} << 23);
  }
}

std::vector<Finiteness> FinitenessOfEach(std::span<const Tensor> tensors) {
  std::vector<Finiteness> each;
  for (const Tensor& tensor : tensors) each.push_back(FinitenessOf(tensor));
  return each;
}

Finiteness Together(const std::vector<Finiteness>& finiteness) {
  Finiteness all;
  for (const Finiteness& one : finiteness) {
    all.has_elements |= one.has_elements;
    all.has_finite |= one.has_finite;
    all.has_nan |= one.has_nan;
    all.has_infinite |= one.has_infinite;
  }
  return all;
}

/// Watches a run: which operators work on numbers, and where numbers end.
class Watch {
 public:
  void See(const Expr& call, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
    const Finiteness given = Together(FinitenessOfEach(inputs));
    const std::vector<Finiteness> of_outputs = FinitenessOfEach(outputs);
    const Finiteness made = Together(of_outputs);
    bool is_reached = given.has_finite || !given.has_elements;
    for (const Finiteness& one : of_outputs) is_reached &= one.has_finite || !one.has_elements;
    const auto [at, is_new] = reached_.emplace(call.get(), is_reached);
    if (is_new) calls_.push_back(call);
    at->second |= is_reached;
    if (CalledOp(call)->name == "qnn.quantize") NoteScale(call, inputs[1]);
    if ((made.has_nan && !given.has_nan) || (made.has_infinite && !given.has_infinite && !given.has_nan)) ++born_;
  }

  [[nodiscard]] std::vector<Expr> Unreached() const {
    std::vector<Expr> unreached;
    std::copy_if(calls_.begin(), calls_.end(), std::back_inserter(unreached), [&](const Expr& call) { return !reached_.at(call.get()); });
    return unreached;
  }
  /// Calls that made NaN or infinities of numbers.
  [[nodiscard]] size_t born() const { return born_; }
  /// The largest that each call which quantises was given.
  [[nodiscard]] const std::unordered_map<const ExprNode*, double>& scales() const { return scales_; }

 private:
  void NoteScale(const Expr& call, const Tensor& scale) {
    double& largest = scales_[call.get()];
    for (const double one : scale.ToDouble()) largest = std::max(largest, one);
  }

  std::unordered_map<const ExprNode*, double> scales_;
  std::vector<Expr> calls_;
  std::unordered_map<const ExprNode*, bool> reached_;  // by any of a call's runs
  size_t born_ = 0;
};

class Sampler {
 public:
  Sampler(const Expr& function, uint64_t seed, const InterpreterOptions& options) : function_(function), seed_(seed), options_(options) {
    const Function& definition = *function->As<Function>();
    for (const Expr& parameter : definition.parameters) {
      for (TensorType& type : FlattenTensors(parameter->type())) types_.push_back(std::move(type));
    }
    if (std::any_of(types_.begin(), types_.end(), [](const TensorType& type) { return type.dtype == DType::kString; }))
      words_ = WordsFor(function);
    if (Result<OpSequence> sequence = ToOpSequence(definition)) analysis_.emplace(std::move(*sequence));
  }

  /// In the order in which they are tried.
  [[nodiscard]] std::vector<InputRanges> Choices() const {
    const bool has_integers = std::ranges::any_of(types_, [](const TensorType& type) {
      return !IsFloatingPoint(type.dtype) && type.dtype != DType::kBool && type.dtype != DType::kString;
    });
    std::vector<InputRanges> choices = {{kNumbers[0], kIntegers}};
    if (has_integers) choices.insert(choices.end(), {{kNumbers[0], kMasks}, {kNumbers[0], kOnes}});
    for (size_t i = 1; i < std::size(kNumbers); ++i) choices.push_back({kNumbers[i], has_integers ? kMasks : kIntegers});
    return choices;
  }

  [[nodiscard]] bool IsShownFinite(const InputRanges& choice) const { return analysis_ && analysis_->IsFinite(RangesFor(choice)); }

  [[nodiscard]] std::vector<Tensor> InputsFor(const InputRanges& choice) const {
    const std::vector<ValueRange> ranges = RangesFor(choice);
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < types_.size(); ++i) {
      Tensor& input = inputs.emplace_back(types_[i]);
      const bool is_continuous = IsFloatingPoint(types_[i].dtype) || types_[i].dtype == DType::kBool;
      if (types_[i].dtype == DType::kString) {
        FillWords(input, seed_ + i, words_);
      } else if (is_continuous) {
        FillRandom(input, seed_ + i, ranges[i].low, ranges[i].high);
      } else {
        FillWhole(input, seed_ + i, ranges[i]);
      }
    }
    return inputs;
  }

  Result<ReferenceSample> Sample() const {
    std::optional<ReferenceSample> best;
    size_t least_born = 0;
    const std::vector<InputRanges> choices = Choices();
    const size_t tries = Tries(choices.size());
    for (size_t i = 0; i < tries; ++i) {
      Watch watch;
      ReferenceSample sample{InputsFor(choices[i]), {}, {}, RoundingTolerance(function_)};
      sample.ranges = choices[i];
      sample.expected = COLLAGE_TRY(Run(sample.inputs, watch));
      sample.unreached = watch.Unreached();
      if (analysis_) sample.steps = QuantisationSteps(analysis_->sequence(), watch.scales());
      const auto badness = [](const ReferenceSample& of, size_t born) { return std::pair(of.unreached.size(), born); };
      if (best && badness(*best, least_born) <= badness(sample, watch.born())) continue;
      best = std::move(sample);
      least_born = watch.born();
      if (best->unreached.empty() && least_born == 0) break;
    }
    return std::move(*best);
  }

 private:
  [[nodiscard]] std::vector<ValueRange> RangesFor(const InputRanges& choice) const {
    std::vector<ValueRange> ranges;
    for (size_t i = 0; i < types_.size(); ++i) {
      const ValueRange numbers = analysis_ && analysis_->Quantised(i) ? Scaled(choice.numbers, *analysis_->Quantised(i)) : choice.numbers;
      const ValueRange free = types_[i].dtype == DType::kBool    ? ValueRange{0, 1}
                              : IsFloatingPoint(types_[i].dtype) ? numbers
                                                                 : choice.integers;
      const bool is_index = !IsFloatingPoint(types_[i].dtype);
      const ValueRange demand = analysis_ ? analysis_->Demand(i) : ValueRange();
      // An index may be any; the ends of what is asked are numbers, where something is asked at all.
      ranges.push_back(is_index && demand.IsBounded() ? demand : Within(demand, free));
    }
    return ranges;
  }

  [[nodiscard]] size_t Tries(size_t most) const {
    const double affordable = analysis_ ? kMostTriedFlops / std::max(1.0, analysis_->Flops()) : 0;
    const size_t in_any_case = kTriedInAnyCase + most - std::size(kNumbers);
    return std::clamp(affordable < static_cast<double>(most) ? static_cast<size_t>(affordable) : most, in_any_case, most);
  }

  Result<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs, Watch& watch) const {
    InterpreterOptions options = options_;
    options.on_values = [&](const Expr& call, std::span<const Tensor> given, std::span<const Tensor> made) {
      watch.See(call, given, made);
      if (options_.on_values) options_.on_values(call, given, made);
    };
    return InterpretFunction(function_, inputs, options);
  }

  const Expr& function_;
  uint64_t seed_;
  const InterpreterOptions& options_;
  std::vector<TensorType> types_;
  std::vector<std::string> words_;    // where a parameter is of strings
  std::optional<Analysis> analysis_;  // nothing for a function with control flow
};

}  // namespace

double RoundingTolerance(const Expr& function) {
  const std::optional<Precision> precision = PermittedPrecision(*function->As<Function>());
  double tolerance = precision ? std::max(kTolerance, precision->tolerance) : kTolerance;
  PostOrder(function, [&](const Expr& expr) {
    const Call* call = expr->As<Call>();
    if (!call) return;
    std::vector<DType> given;
    std::vector<Type> types;
    for (const Expr& arg : call->args) {
      types.push_back(arg->type());
      for (const TensorType& type : FlattenTensors(arg->type())) given.push_back(type.dtype);
    }
    const OpDef* op = CalledOp(expr);
    const bool computes = op && op->work && op->work(types, expr->type(), call->attributes).flops > 0;
    for (const TensorType& type : FlattenTensors(expr->type())) {
      if (computes || std::any_of(given.begin(), given.end(), [&](DType dtype) { return dtype != type.dtype; }))
        tolerance = std::max(tolerance, Tolerance(type.dtype));
    }
  });
  return tolerance;
}

Result<ReferenceSample> SampleReference(const Expr& function, uint64_t seed, const InterpreterOptions& options) {
  return Sampler(function, seed, options).Sample();
}

Result<std::vector<Tensor>> SuitableInputs(const Expr& function, uint64_t seed, const std::optional<InputRanges>& known) {
  const InterpreterOptions options;
  const Sampler sampler(function, seed, options);
  const InputRanges usual = sampler.Choices()[0];
  if (known || sampler.IsShownFinite(usual)) return sampler.InputsFor(known.value_or(usual));
  return COLLAGE_TRY(sampler.Sample()).inputs;
}

}  // namespace collage
