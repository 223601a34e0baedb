#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include "collage/runtime/kernel.h"
#include "tests/runtime/layout_oracle.h"

namespace collage {

/// What a fake kernel computes on logical elements (wrapping 32-bit integers, so that results are exact): every output mixes
/// permuted elements of every input, and an accumulating kernel adds that to its accumulated input for output 0.
inline std::vector<std::vector<uint32_t>> EvaluateFake(const std::vector<const std::vector<uint32_t>*>& inputs,
                                                       const std::vector<size_t>& output_counts, std::optional<size_t> accumulated,
                                                       uint32_t salt) {
  std::vector<std::vector<uint32_t>> outputs;
  for (size_t o = 0; o < output_counts.size(); ++o) {
    std::vector<uint32_t> output(output_counts[o]);
    for (size_t i = 0; i < output.size(); ++i) {
      uint32_t sum = salt + static_cast<uint32_t>(o);
      for (size_t k = 0; k < inputs.size(); ++k) {
        if (o == 0 && k == accumulated) continue;
        sum = sum * 31 + (*inputs[k])[(i * 7 + o + k) % inputs[k]->size()];
      }
      output[i] = sum;
      if (o == 0 && accumulated) output[i] += 3 * (*inputs[*accumulated])[i];
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

/// Works in any layouts. Fails when what the contract promises does not hold: alignment, zero padding, one buffer for both ends of
/// an accumulation, no other overlap. Scribbles over its workspace.
class FakeKernel : public Kernel {
 public:
  FakeKernel(std::vector<Port> inputs, std::vector<Port> outputs, std::optional<size_t> accumulated, size_t workspace, uint32_t salt)
      : salt_(salt) {
    inputs_ = std::move(inputs);
    outputs_ = std::move(outputs);
    workspace_bytes_ = workspace;
    accumulated_input_ = accumulated;
    for (const Port& port : inputs_) counts_.push_back(PhysicalByteCount(port.type, port.layout) / 4);
    for (const Port& port : outputs_) counts_.push_back(PhysicalByteCount(port.type, port.layout) / 4);
    for (const Port& port : inputs_) offsets_.push_back(Offsets(port));
    for (const Port& port : outputs_) offsets_.push_back(Offsets(port));
    for (const Port& port : inputs_) scratch_.emplace_back(static_cast<size_t>(port.type.ElementCount()));
    for (const Port& port : outputs_) scratch_.emplace_back(static_cast<size_t>(port.type.ElementCount()));
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    for (size_t i = 0; i < outputs.size(); ++i) {
      for (size_t k = 0; k < inputs.size(); ++k) {
        const bool must_share = i == 0 && accumulated_input_ == k;
        if (must_share ? inputs[k] != outputs[i] : Overlap(inputs[k], counts_[k], outputs[i], counts_[inputs_.size() + i]))
          return Fail("wrong sharing");
      }
    }
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (reinterpret_cast<uintptr_t>(inputs[k]) % 64 != 0) return Fail("misaligned input");
      const auto* data = static_cast<const uint32_t*>(inputs[k]);
      uint32_t everything = 0;
      for (size_t i = 0; i < counts_[k]; ++i) everything += data[i];
      for (size_t i = 0; i < scratch_[k].size(); ++i) everything -= scratch_[k][i] = data[offsets_[k][i]];
      if (everything != 0) return Fail("padding is not zero");
    }
    if (workspace_bytes_ > 0) std::memset(workspace, 0xab, workspace_bytes_);
    for (size_t o = 0; o < outputs.size(); ++o) Compute(o);
    for (size_t o = 0; o < outputs.size(); ++o) {
      if (reinterpret_cast<uintptr_t>(outputs[o]) % 64 != 0) return Fail("misaligned output");
      auto* data = static_cast<uint32_t*>(outputs[o]);
      const size_t port = inputs_.size() + o;
      std::memset(data, 0, counts_[port] * 4);
      for (size_t i = 0; i < scratch_[port].size(); ++i) data[offsets_[port][i]] = scratch_[port][i];
    }
    return {};
  }

 private:
  static bool Overlap(const void* a, size_t a_count, const void* b, size_t b_count) {
    const auto* first = static_cast<const uint32_t*>(a);
    const auto* second = static_cast<const uint32_t*>(b);
    return first < second + b_count && second < first + a_count;
  }

  static std::vector<size_t> Offsets(const Port& port) {
    std::vector<size_t> offsets;
    ForEachIndex(port.type.shape,
                 [&](const std::vector<int64_t>& index) { offsets.push_back(PhysicalOffset(port.type, port.layout, index)); });
    return offsets;
  }

  /// EvaluateFake once more, written so that it allocates nothing.
  void Compute(size_t o) {
    std::vector<uint32_t>& output = scratch_[inputs_.size() + o];
    for (size_t i = 0; i < output.size(); ++i) {
      uint32_t sum = salt_ + static_cast<uint32_t>(o);
      for (size_t k = 0; k < inputs_.size(); ++k) {
        if (o == 0 && k == accumulated_input_) continue;
        sum = sum * 31 + scratch_[k][(i * 7 + o + k) % scratch_[k].size()];
      }
      output[i] = sum;
      if (o == 0 && accumulated_input_) output[i] += 3 * scratch_[*accumulated_input_][i];
    }
  }

  uint32_t salt_;
  std::vector<size_t> counts_;                  // physical elements: inputs, then outputs
  std::vector<std::vector<size_t>> offsets_;    // likewise
  std::vector<std::vector<uint32_t>> scratch_;  // likewise
};

}  // namespace collage
