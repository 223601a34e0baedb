#include "collage/search/extension.h"

#include <algorithm>

namespace collage {
namespace {

size_t FindSorted(const std::vector<size_t>& sorted, size_t value) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), value);
  return at != sorted.end() && *at == value ? static_cast<size_t>(at - sorted.begin()) : sorted.size();
}

}  // namespace

std::vector<size_t> OpenAfter(const SearchTables& tables, const std::vector<size_t>& open_before, const SearchCandidate& candidate,
                              const Covered& after) {
  std::vector<size_t> open = open_before;
  candidate.inside.ForEach([&](size_t node) {
    const std::vector<size_t>& produced = tables.ProducedBy(node);
    const std::vector<size_t>& consumed = tables.ConsumedBy(node);
    open.insert(open.end(), produced.begin(), produced.end());
    open.insert(open.end(), consumed.begin(), consumed.end());
  });
  std::sort(open.begin(), open.end());
  open.erase(std::unique(open.begin(), open.end()), open.end());
  std::erase_if(open, [&](size_t tensor) { return !tables.IsOpen(tensor, after); });
  return open;
}

Extension::Extension(const SearchTables& tables, size_t c, const Frontier& from, const Frontier& to)
    : tables_(tables),
      candidate_(tables.problem().candidates[c]),
      variants_(tables.VariantsOf(c)),
      before_count_(from.open().size()),
      touched_(from.open()) {
  const auto slot_of = [&](size_t tensor) {
    if (const size_t before = FindSorted(from.open(), tensor); before < from.open().size()) return before;
    const auto at = std::find(touched_.begin() + static_cast<std::ptrdiff_t>(before_count_), touched_.end(), tensor);
    const auto slot = static_cast<size_t>(at - touched_.begin());
    if (at == touched_.end()) touched_.push_back(tensor);
    return slot;
  };
  const SearchCandidate& candidate = candidate_;
  for (const size_t tensor : candidate.inputs) input_slots_.push_back(slot_of(tensor));
  for (const size_t tensor : candidate.outputs) output_slots_.push_back(slot_of(tensor));
  for (const size_t tensor : to.open()) {
    const size_t producer = tables.problem().tensors[tensor].producer;
    const bool is_made = producer != SearchTensor::kOutside && candidate.inside.Contains(producer);
    if (is_made && std::find(candidate.outputs.begin(), candidate.outputs.end(), tensor) == candidate.outputs.end())
      unlisted_slots_.push_back(slot_of(tensor));
    result_slots_.push_back(slot_of(tensor));
  }
}

Cost Extension::Demand(Frontier::TensorState& state, size_t tensor, size_t layout) const {
  if (state.layouts & LayoutBit(layout)) return {};
  state.layouts |= LayoutBit(layout);
  return state.produced < Frontier::kUnproduced ? tables_.Conversion(tensor, state.produced, layout) : Cost();
}

Cost Extension::Produce(Frontier::TensorState& state, size_t tensor, size_t layout) const {
  Cost cost;
  if (tables_.problem().tensors[tensor].is_result) state.layouts |= LayoutBit(0);
  for (unsigned wanted = state.layouts; wanted != 0; wanted &= wanted - 1)
    cost += tables_.Conversion(tensor, layout, static_cast<size_t>(__builtin_ctz(wanted)));
  state.produced = static_cast<uint8_t>(layout);
  state.layouts |= LayoutBit(layout);
  return cost;
}

Cost Extension::Apply(size_t variant, const Frontier::TensorState* before, Scratch& scratch) const {
  scratch.work.assign(before, before + before_count_);
  scratch.work.resize(touched_.size());
  const SearchTables::Variant& chosen = variants_[variant];
  Cost cost;
  for (size_t i = 0; i < input_slots_.size(); ++i)
    cost += Demand(scratch.work[input_slots_[i]], candidate_.inputs[i], chosen.input_layouts[i]);
  for (size_t i = 0; i < output_slots_.size(); ++i)
    cost += Produce(scratch.work[output_slots_[i]], candidate_.outputs[i], chosen.output_layouts[i]);
  for (const size_t slot : unlisted_slots_) cost += Produce(scratch.work[slot], touched_[slot], 0);
  scratch.result.resize(result_slots_.size());
  for (size_t i = 0; i < result_slots_.size(); ++i) scratch.result[i] = scratch.work[result_slots_[i]];
  return cost;
}

}  // namespace collage
