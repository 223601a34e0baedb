// A whole backend: softmax over the rows of a tensor, with a factor before it where there is one, as in attention. One pass over
// the row finds its largest element, the second sums exponentials, the third divides; a library call for the factor is saved.
//
// What each function promises is in <collage/backend/backend.h>. `collage-conformance --plugin FILE` holds a backend to it.

#include <collage/backend/entry.h>
#include <collage/ir/op_sequence.h>
#include <collage/op/rules.h>
#include <collage/runtime/parallel.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace rowwise {
namespace {

using collage::Device;
using collage::Expr;
using collage::OpSequence;
using collage::Result;
using collage::TensorType;
using collage::Variant;
using collage::Verdict;

/// softmax(factor * x) over the last dimension.
struct Rows {
  TensorType type;
  float factor = 1;
  int64_t count = 0;
  int64_t width = 0;
};

void Softmax(const float* x, int64_t width, float factor, float* result) {
  float largest = factor * x[0];
  for (int64_t i = 0; i < width; ++i) largest = std::max(largest, factor * x[i]);
  float sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += result[i] = std::exp(factor * x[i] - largest);
  for (int64_t i = 0; i < width; ++i) result[i] /= sum;
}

class RowsKernel final : public collage::Kernel {
 public:
  RowsKernel(Rows rows, int threads) : rows_(std::move(rows)), threads_(threads) {
    inputs_.push_back({rows_.type, collage::Layout()});
    outputs_.push_back({rows_.type, collage::Layout()});
  }

  collage::Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* /*workspace*/) override {
    const auto* x = static_cast<const float*>(inputs[0]);
    auto* result = static_cast<float*>(outputs[0]);
    // A thread that has less to do than this is not worth waking: some microseconds.
    constexpr int64_t kLeastElements = 4096;
    const auto grain = static_cast<size_t>(std::max<int64_t>(1, kLeastElements / rows_.width));
    // The pool that all backends share. Threads of one's own would fight it for the processors.
    collage::ParallelFor(static_cast<size_t>(rows_.count), grain, threads_, [&](size_t begin, size_t end) {
      for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row)
        Softmax(x + row * rows_.width, rows_.width, rows_.factor, result + row * rows_.width);
    });
    return {};
  }

  // It has no state of its own while it runs, so a copy serves another thread.
  [[nodiscard]] std::unique_ptr<Kernel> Twin() const override { return std::make_unique<RowsKernel>(rows_, threads_); }

 private:
  Rows rows_;
  int threads_;
};

/// What a function computes, if it is one of those that the patterns find.
std::optional<Rows> Recognise(const OpSequence& sequence) {
  const auto& steps = sequence.steps;
  if (steps.empty() || steps.size() > 2 || steps.back().op->name != "nn.softmax" || sequence.parameters.size() != 1) return std::nullopt;
  Rows rows{sequence.values[sequence.parameters[0]].type};
  const size_t rank = rows.type.shape.size();
  if (rank == 0 || rows.type.ElementCount() == 0 || rows.type.dtype != collage::DType::kFloat32) return std::nullopt;
  if (collage::AxisAttribute(steps.back().attributes, "axis", -1, rank) + 1 != rank) return std::nullopt;
  if (steps.size() == 2) {
    if (steps[0].op->name != "multiply" || sequence.values[steps[0].outputs[0]].type != rows.type) return std::nullopt;
    const auto& left = sequence.values[steps[0].inputs[0]].constant;
    const auto& factor = left ? left : sequence.values[steps[0].inputs[1]].constant;
    if (!factor || factor->ElementCount() != 1) return std::nullopt;
    rows.factor = static_cast<float>(factor->ToDouble()[0]);
  }
  rows.width = rows.type.shape.back();
  rows.count = rows.type.ElementCount() / rows.width;
  return rows;
}

class RowwiseBackend final : public collage::Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "rowwise"; }

  // One that stands on a library asks for it here, and says in one line what is missing.
  [[nodiscard]] collage::Presence Probe(const Device& device) const override {
    return device.kind == collage::DeviceKind::kCpu ? collage::Presence::Version("1.0")
                                                    : collage::Presence::Absent("it runs on the CPU only");
  }

  [[nodiscard]] collage::BackendRules Rules() const override {
    using namespace collage::pattern;
    const collage::Pattern x = Wildcard();
    collage::BackendRules rules;
    rules.style = collage::BackendRules::Style::kPattern;
    rules.patterns.push_back(
        {"rowwise.scaled_softmax", CallOf("nn.softmax", {CallOf("multiply", {x.As("x"), IsConstant().As("factor")})}), Check});
    rules.patterns.push_back({"rowwise.softmax", CallOf("nn.softmax", {x.As("x")}), Check});
    return rules;
  }

  // One for each algorithm or choice of layouts that deserves a price of its own.
  [[nodiscard]] std::vector<Variant> Variants(const collage::Function& function, const Device& /*device*/) const override {
    const Result<OpSequence> sequence = collage::ToOpSequence(function);
    if (!sequence || !Recognise(*sequence)) return {};
    return {Variant{kVariant, {collage::Layout()}, {collage::Layout()}}};
  }

  [[nodiscard]] Result<std::unique_ptr<collage::Kernel>> Compile(const collage::Function& function, const Device& device,
                                                                 const Variant& variant) const override {
    const OpSequence sequence = COLLAGE_TRY(collage::ToOpSequence(function));
    std::optional<Rows> rows = Recognise(sequence);
    if (!rows || variant.name != kVariant) return collage::Fail("rowwise: it computes softmax over rows only");
    return std::make_unique<RowsKernel>(std::move(*rows), device.threads);
  }

 private:
  static constexpr const char* kVariant = "three_passes";

  /// What patterns cannot say. `collage explain --operators` prints the reason of a refusal.
  static Verdict Check(const collage::Match& match) {
    const TensorType& result = *match.root->type().AsTensor();
    const TensorType* x = match.Find("x")->type().AsTensor();
    if (!x || *x != result) return Verdict::Reject("rowwise: the factor changes the shape");
    if (result.dtype != collage::DType::kFloat32) return Verdict::Reject("rowwise: float32 is supported");
    if (result.shape.empty() || result.ElementCount() == 0) return Verdict::Reject("rowwise: there are no rows");
    const size_t rank = result.shape.size();
    if (collage::AxisAttribute(match.root->As<collage::Call>()->attributes, "axis", -1, rank) + 1 != rank)
      return Verdict::Reject("rowwise: softmax is not over the last dimension");
    const Expr factor = match.Find("factor");
    if (factor && factor->type().AsTensor()->ElementCount() != 1) return Verdict::Reject("rowwise: there are several factors");
    return Verdict::Accept();
  }
};

}  // namespace
}  // namespace rowwise

COLLAGE_BACKEND(rowwise::RowwiseBackend)
