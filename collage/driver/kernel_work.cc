#include "collage/driver/kernel_work.h"

#include <algorithm>
#include <set>
#include <string>

#include "collage/ir/op_sequence.h"
#include "collage/op/volume.h"
#include "collage/op/window.h"
#include "collage/support/hash.h"

namespace collage {
namespace {

/// Equal for equal calls on tensors of equal types.
uint64_t NumberOf(const OpSequence::Step& step) {
  uint64_t number = HashCombine(HashBytes(step.op->name), step.attributes.Hash());
  for (const Type& type : step.argument_types) number = HashCombine(number, HashBytes(ToString(type)));
  return number;
}

/// Operators that cannot give their whole result without every element of every argument. Not those with a window (NeededByWindows) or an
/// index: strides and indices may leave elements out.
bool NeedsAll(const OpSequence::Step& step) {
  static const std::set<std::string> whole = {"nn.dense",      "nn.batch_matmul", "nn.softmax",          "nn.log_softmax",
                                              "nn.layer_norm", "concatenate",     "nn.global_avg_pool2d"};
  const OpKind kind = step.op->kind;
  return kind == OpKind::kElementwise || kind == OpKind::kBroadcast || kind == OpKind::kCommReduce || whole.contains(step.op->name);
}

/// For operators that slide a window over their first argument or their result: how many elements of each argument their whole result
/// needs. Empty for others.
std::vector<double> NeededByWindows(const OpSequence::Step& step) {
  const std::string& op = step.op->name;
  const auto argument = [&](size_t i) -> const TensorType& { return *step.argument_types[i].AsTensor(); };
  const auto of_convolution = [&](const auto& c) {
    const WindowUse use = UseOf(c->window, c->input, c->output);
    const int64_t inputs_of_group = c->input_channels / c->groups;
    const auto weights_of_tap = static_cast<double>(c->output_channels * inputs_of_group);
    return std::vector{static_cast<double>(c->batch * c->input_channels) * use.elements, weights_of_tap * use.taps};
  };
  const auto of_transposed = [&](const auto& c) {
    const int64_t outputs_of_group = c->output_channels / c->groups;
    const auto weights_of_tap = static_cast<double>(c->input_channels * outputs_of_group);
    const WindowUse use = UseOf(c->window, c->output, c->input);
    return std::vector{static_cast<double>(c->batch * c->input_channels) * use.positions, weights_of_tap * use.taps};
  };
  const auto of_pooling = [&](const auto& p) {
    return std::vector{static_cast<double>(p->batch * p->channels) * UseOf(p->window, p->input, p->output).elements};
  };
  if (op == "nn.conv2d") return of_convolution(ReadConvolution(argument(0), argument(1), step.attributes));
  if (op == "nn.conv3d") return of_convolution(ReadVolumeConvolution(argument(0), argument(1), step.attributes, /*transposed=*/false));
  if (op == "nn.conv2d_transpose") return of_transposed(ReadTransposedConvolution(argument(0), argument(1), step.attributes));
  if (op == "nn.conv3d_transpose")
    return of_transposed(ReadVolumeConvolution(argument(0), argument(1), step.attributes, /*transposed=*/true));
  if (op == "nn.max_pool2d" || op == "nn.avg_pool2d") return of_pooling(ReadPooling(argument(0), step.attributes));
  if (op == "nn.max_pool3d" || op == "nn.avg_pool3d") return of_pooling(ReadVolumePooling(argument(0), step.attributes));
  return {};
}

/// Operators whose result has each element from an element of its own.
bool MovesOneToOne(const OpSequence::Step& step) {
  static const std::set<std::string> moving = {"strided_slice", "split",       "transpose",       "reshape",
                                               "squeeze",       "expand_dims", "nn.batch_flatten"};
  return step.op->kind == OpKind::kElementwise || moving.contains(step.op->name);
}

/// How many elements of each value no kernel of the function can do without.
std::vector<double> NeededElements(const OpSequence& sequence) {
  std::vector<double> needed(sequence.values.size(), 0);
  const auto all_of = [&](size_t value) { return static_cast<double>(sequence.values[value].type.ElementCount()); };
  for (const size_t value : sequence.results) needed[value] = all_of(value);
  for (auto step = sequence.steps.rbegin(); step != sequence.steps.rend(); ++step) {
    const bool all = std::all_of(step->outputs.begin(), step->outputs.end(), [&](size_t value) { return needed[value] == all_of(value); });
    double of_outputs = 0;
    for (const size_t value : step->outputs) of_outputs += needed[value];
    const std::vector<double> by_windows = all ? NeededByWindows(*step) : std::vector<double>();
    for (size_t i = 0; i < step->inputs.size(); ++i) {
      const size_t value = step->inputs[i];
      const double least = !by_windows.empty()      ? by_windows[i]
                           : all && NeedsAll(*step) ? all_of(value)
                           : MovesOneToOne(*step)   ? of_outputs
                                                    : 0;
      needed[value] = std::max(needed[value], std::min(least, all_of(value)));
    }
  }
  return needed;
}

}  // namespace

DeviceLimits LimitsOf(const Device& device) {
  constexpr double kCyclesPerSecond = 5e9;
  constexpr double kFlopsPerCycle = 2 * 16 * 2;
  constexpr double kSavedByFastAlgorithms = 4;
  constexpr double kBytesPerCycle = 64;
  // Above all that is sold: of other devices nothing is known before they are measured.
  if (device.kind != DeviceKind::kCpu) return {1e16, 1e14};
  const double threads = device.threads;
  return {threads * kCyclesPerSecond * kFlopsPerCycle * kSavedByFastAlgorithms, threads * kCyclesPerSecond * kBytesPerCycle};
}

KernelFacts WorkOf(const Function& function, const Device& device) {
  KernelFacts facts;
  const Result<OpSequence> sequence = ToOpSequence(function);
  if (!sequence) return facts;
  const std::vector<double> needed = NeededElements(*sequence);
  const auto bytes_of = [&](size_t value) { return static_cast<double>(sequence->values[value].type.ByteCount()); };
  const auto needs_all = [&](size_t value) { return needed[value] == static_cast<double>(sequence->values[value].type.ElementCount()); };
  double flops = 0;
  std::vector<uint64_t> kinds;
  for (const OpSequence::Step& step : sequence->steps) {
    const bool is_heavy = step.op->kind == OpKind::kOutElementwiseFusable;
    const double flops_of_step = step.op->work(step.argument_types, step.result_type, step.attributes).flops;
    if (is_heavy) {
      facts.heavy.push_back(NumberOf(step));
      kinds.push_back(HashCombine(HashBytes(step.op->name), step.attributes.Hash()));
      facts.flops += flops_of_step;
    }
    // What nobody needs may be left out.
    if ((NeedsAll(step) || !NeededByWindows(step).empty()) && std::all_of(step.outputs.begin(), step.outputs.end(), needs_all))
      flops += flops_of_step;
  }
  std::sort(facts.heavy.begin(), facts.heavy.end());
  std::sort(kinds.begin(), kinds.end());
  for (const uint64_t kind : kinds) facts.kind = HashCombine(facts.kind, kind);
  double touched = 0;
  for (const size_t value : sequence->parameters) {
    facts.bytes += bytes_of(value);
    touched += bytes_of(value) * needed[value] / std::max(1.0, static_cast<double>(sequence->values[value].type.ElementCount()));
  }
  for (const size_t value : sequence->results) {
    facts.bytes += bytes_of(value);
    touched += bytes_of(value);
  }
  // Constants count in what a kernel reads, but not in what none can do without: they may be packed into fewer bytes.
  for (size_t value = 0; value < sequence->values.size(); ++value) {
    if (!sequence->values[value].constant) continue;
    facts.bytes += bytes_of(value) * needed[value] / std::max(1.0, static_cast<double>(sequence->values[value].type.ElementCount()));
  }
  const DeviceLimits limits = LimitsOf(device);
  facts.roofline = Cost::Seconds(std::max(flops / limits.flops_per_second, touched / limits.bytes_per_second));
  return facts;
}

KernelFacts WithFewerBits(KernelFacts facts) {
  // Tiles of AMX multiply 16 x 16 x 32 pairs in 16 cycles: 16 times what two vectors of 16 float32 do. Weights of 8 bits gain less: a
  // quarter of the bytes.
  constexpr double kProductsOfMatrixUnits = 16;
  facts.backend = HashCombine(facts.backend, HashBytes("fewer bits"));
  facts.bytes /= 2;
  facts.roofline = Cost::Seconds(facts.roofline.ToSeconds() / kProductsOfMatrixUnits);
  return facts;
}

}  // namespace collage
