#include "collage/op/rounding_effect.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "collage/ir/call_work.h"
#include "collage/ir/visit.h"
#include "collage/support/hash.h"
#include "collage/tensor/narrow.h"

namespace collage {
namespace {

// A right program is one such run more, and is farther than all of n others in one of n + 1 cases (a conformal bound; at 95% these are 19).
// Of three, one right program in four was refused where a network of integers amplifies each step.
constexpr int kMostRuns = 19;
// What fast convolutions lose beside summing in another order (kTolerance).
constexpr double kFastAlgorithms = 10;

/// Half a unit in the last place, relative to a number. float64 is held to what float32 is, as in kTolerance.
double UnitRoundoff(DType dtype) {
  constexpr double kOfFloat32 = 0x1p-24;
  return std::max(kOfFloat32, (Tolerance(dtype) - kTolerance) / 2);
}

double LargestFinite(const Tensor& wide) {
  double largest = 0;
  VisitElementType(wide.dtype(), [&](auto zero) {
    for (const auto value : wide.Values<decltype(zero)>()) {
      const double magnitude = std::abs(static_cast<double>(value));
      if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
    }
  });
  return largest;
}

/// Whether an operator only picks or moves numbers. Averages count among these: equality with the largest of some must survive.
bool IsExact(const Expr& call) {
  const OpDef& op = *CalledOp(call);
  return op.is_view || op.is_within_arguments;
}

/// Products and sums behind one element of a call's results.
double TermsOfElement(const Expr& call, int64_t elements) {
  return WorkOfCall(call).flops / (2 * static_cast<double>(std::max<int64_t>(1, elements)));
}

class Rounding {
 public:
  explicit Rounding(uint64_t seed) : seed_(seed) {}

  void Apply(const Expr& call, std::span<Tensor> outputs) {
    if (IsExact(call)) return;
    int64_t elements = 0;
    for (const Tensor& output : outputs) elements += output.ElementCount();
    const double terms = TermsOfElement(call, elements);
    for (Tensor& output : outputs) {
      if (IsFloatingPoint(output.dtype())) Apply(terms, output);
    }
  }

 private:
  /// Errors of sums are relative to what was summed, of which the largest results give an idea; others are relative to the number itself.
  void Apply(double terms, Tensor& tensor) {
    Tensor wide = Widened(tensor);
    const double unit = UnitRoundoff(tensor.dtype());
    const double of_sums = terms > 1 ? kFastAlgorithms * std::sqrt(terms) * UnitRoundoff(DType::kFloat32) * LargestFinite(wide) : 0;
    VisitElementType(wide.dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* data = wide.MutableData<T>();
      const int64_t count = wide.ElementCount();
      for (int64_t i = 0; i < count; ++i) {
        const auto value = static_cast<double>(data[i]);
        if (!std::isfinite(value)) continue;
        seed_ = HashCombine(seed_, 1);
        const double share = static_cast<double>(static_cast<int64_t>(seed_)) * 0x1p-63;  // in [-1, 1)
        // No sign changes: what is a number for the reference stays one for a root or a logarithm behind it.
        data[i] = static_cast<T>(value + share * std::min(std::abs(value) / 2, std::abs(value) * 2 * unit + of_sums));
      }
    });
    if (IsNarrow(tensor.dtype())) {
      Narrow(wide, tensor);
    } else {
      tensor = std::move(wide);
    }
  }

  uint64_t seed_;
};

void TakeFarther(Agreement& farthest, const Agreement& other) {
  farthest.difference = std::max(farthest.difference, other.difference);
  farthest.unequal = std::max(farthest.unequal, other.unequal);
}

}  // namespace

bool CompoundsRounding(const Expr& function) {
  int operators = 0;
  bool is_some_rounding = false;
  PostOrder(function, [&](const Expr& expr) {
    const OpDef* op = CalledOp(expr);
    if (op == nullptr || op->is_view) return;
    ++operators;
    is_some_rounding = is_some_rounding || !IsExact(expr);
  });
  return is_some_rounding && operators > 1;
}

RoundingEffect::RoundingEffect(RunReference run, const ReferenceSample& sample, uint64_t seed, InterpreterOptions options)
    : run_(std::move(run)), sample_(sample), seed_(seed), options_(std::move(options)), farthest_(sample.expected.size()) {}

Result<bool> RoundingEffect::RunAgain() {
  if (runs_ == kMostRuns) return false;
  Rounding rounding(HashCombine(seed_, static_cast<uint64_t>(runs_++)));
  InterpreterOptions rounded = options_;
  rounded.round = [&](const Expr& call, std::span<Tensor> outputs) { rounding.Apply(call, outputs); };
  const std::vector<Tensor> found = COLLAGE_TRY(run_(sample_.inputs, rounded));
  for (size_t output = 0; output < farthest_.size(); ++output) TakeFarther(farthest_[output], sample_.CompareOutput(output, found[output]));
  return true;
}

}  // namespace collage
