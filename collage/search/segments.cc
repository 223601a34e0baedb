#include "collage/search/segments.h"

#include <algorithm>
#include <bit>

namespace collage {
namespace {

constexpr size_t kShortest = 16;  // stretches below cost more to recognise than to search
constexpr size_t kLarge = 48;     // candidates of more nodes may leave a stretch

bool IsStretch(const IndexSet& inside) { return inside.Count() == inside.Last() - inside.First() + 1; }

class Hasher {
 public:
  void Add(uint64_t value) {
    lanes_[0] = HashCombine(lanes_[0], value);
    lanes_[1] = HashCombine(lanes_[1] ^ 0x5851f42d4c957f2dull, value);
  }
  void Add(Cost cost) { Add(std::bit_cast<uint64_t>(cost)); }
  [[nodiscard]] Segments::Fingerprint value() const { return lanes_; }

 private:
  Segments::Fingerprint lanes_ = {1, 2};
};

/// Tensors by the order in which a stretch meets them.
class Numbering {
 public:
  void Add(size_t tensor) {
    number_.emplace(tensor, number_.size());
    tensors_.push_back(tensor);
  }
  [[nodiscard]] const std::vector<size_t>& tensors() const { return tensors_; }
  [[nodiscard]] uint64_t Of(size_t tensor) const {
    const auto at = number_.find(tensor);
    return at == number_.end() ? HashCombine(tensor, 1) : at->second;
  }

 private:
  std::unordered_map<size_t, size_t> number_;
  std::vector<size_t> tensors_;
};

}  // namespace

Segments::Segments(const SearchTables& tables) : tables_(tables), end_of_(tables.problem().node_count + 1, 0) { FindCuts(); }

void Segments::FindCuts() {
  const size_t count = tables_.problem().node_count;
  std::vector<const IndexSet*> large;
  std::vector<int64_t> opened(count + 2, 0);
  const auto cross = [&](const IndexSet& inside) {
    ++opened[inside.First() + 1];
    --opened[inside.Last() + 1];
  };
  for (size_t node = 0; node < count; ++node) {
    for (const size_t c : tables_.StartingAt(node)) {
      const IndexSet& inside = tables_.problem().candidates[c].inside;
      if (inside.Last() - inside.First() >= kLarge && IsStretch(inside)) {
        large.push_back(&inside);
      } else {
        cross(inside);
      }
    }
  }
  std::vector<bool> is_cut(count + 1, false);
  for (bool changed = true; changed;) {
    int64_t crossing = 0;
    for (size_t node = 0; node <= count; ++node) {
      crossing += opened[node];
      is_cut[node] = crossing == 0;
    }
    const size_t before = large.size();
    std::erase_if(large, [&](const IndexSet* inside) {
      if (is_cut[inside->First()] && is_cut[inside->Last() + 1]) return false;
      cross(*inside);
      return true;
    });
    changed = large.size() != before;
  }
  std::vector<bool> is_needed(count + 1, false);
  for (const IndexSet* inside : large) is_needed[inside->First()] = is_needed[inside->Last() + 1] = true;
  for (size_t begin = 0; begin < count;) {
    size_t end = begin + 1;
    while (end < count && !(is_needed[end] || (is_cut[end] && end - begin >= kShortest))) ++end;
    if (end - begin >= kShortest && is_cut[begin] && is_cut[end]) end_of_[begin] = end;
    begin = end;
  }
}

std::vector<size_t> Segments::CandidatesWithin(size_t begin) const {
  std::vector<size_t> within;
  for (size_t node = begin; node < end_of_[begin]; ++node) {
    for (const size_t c : tables_.StartingAt(node)) {
      if (tables_.problem().candidates[c].inside.Last() < end_of_[begin]) within.push_back(c);
    }
  }
  return within;
}

Segments::Fingerprint Segments::FingerprintOf(size_t begin, const Frontier& from, const std::vector<Frontier::State>& entered) const {
  const SearchProblem& problem = tables_.problem();
  const size_t end = end_of_[begin];
  const Covered at_end{end, {}};
  Hasher hasher;
  Numbering numbering;
  const auto add_tensor = [&](size_t tensor) {
    numbering.Add(tensor);
    const LayoutMask wishes = tables_.AllWishes(tensor) | LayoutBit(0);
    hasher.Add(tables_.MadeIn(tensor) | static_cast<uint64_t>(tables_.AllWishes(tensor)) << 32);
    hasher.Add(problem.tensors[tensor].is_result);
    hasher.Add(tables_.HasManyConsumers(tensor));
    hasher.Add(tables_.IsOpen(tensor, at_end) ? 1 + uint64_t{tables_.StillWanted(tensor, at_end)} : 0);
    tables_.ForEachWish(tensor, begin, end, [&](size_t consumer, LayoutMask wish) { hasher.Add((consumer - begin) << 32 | wish); });
    const size_t layouts = tables_.LayoutsOf(tensor).size();
    for (size_t a = 0; a < layouts; ++a) {
      for (size_t b = 0; b < layouts; ++b) {
        if ((tables_.MadeIn(tensor) & LayoutBit(a)) && (wishes & LayoutBit(b))) hasher.Add(tables_.Conversion(tensor, a, b));
      }
    }
  };
  hasher.Add(end - begin);
  hasher.Add(end == problem.node_count);
  for (const size_t tensor : from.open()) add_tensor(tensor);
  for (size_t node = begin; node < end; ++node) {
    for (const size_t tensor : tables_.ProducedBy(node)) add_tensor(tensor);
  }
  std::vector<size_t> open_at_end;  // their order is part of what an outcome says
  for (const size_t tensor : numbering.tensors()) {
    if (tables_.IsOpen(tensor, at_end)) open_at_end.push_back(tensor);
  }
  std::sort(open_at_end.begin(), open_at_end.end());
  for (const size_t tensor : open_at_end) hasher.Add(numbering.Of(tensor));
  for (const size_t c : CandidatesWithin(begin)) {
    const SearchCandidate& candidate = problem.candidates[c];
    hasher.Add(candidate.inside.Count());
    candidate.inside.ForEach([&](size_t node) { hasher.Add(node - begin); });
    hasher.Add(candidate.backend << 1 | (candidate.is_partition ? 1 : 0));
    for (const auto* list : {&candidate.inputs, &candidate.outputs}) {
      hasher.Add(list->size());
      for (const size_t tensor : *list) hasher.Add(numbering.Of(tensor));
    }
    for (size_t v = 0; v < candidate.variants.size(); ++v) {
      const SearchTables::Variant& variant = tables_.VariantsOf(c)[v];
      hasher.Add(variant.is_usable);
      hasher.Add(candidate.variants[v].cost);
      for (const size_t layout : variant.input_layouts) hasher.Add(layout);
      for (const size_t layout : variant.output_layouts) hasher.Add(layout);
    }
  }
  for (const Frontier::State& state : entered) {
    hasher.Add(state.cost - entered.front().cost);
    hasher.Add(static_cast<uint64_t>(state.partitions) - entered.front().partitions);
    hasher.Add(state.last_backend);
    for (size_t i = 0; i < from.open().size(); ++i) {
      const Frontier::TensorState tensor = from.TensorsOf(state)[i];
      hasher.Add(tensor.layouts | static_cast<uint64_t>(tensor.produced) << 32);
    }
  }
  return hasher.value();
}

}  // namespace collage
