#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage {

/// The inputs or outputs of a node: a few indices in an array that belongs to the graph. One word, so that a node fits a cache line.
class NodeIndices {
 public:
  using value_type = uint32_t;
  using const_iterator = const uint32_t*;

  NodeIndices() = default;
  /// `counted`: how many, then they.
  explicit NodeIndices(const uint32_t* counted) : counted_(counted) {}

  [[nodiscard]] size_t size() const { return *counted_; }
  [[nodiscard]] bool empty() const { return *counted_ == 0; }
  [[nodiscard]] const_iterator begin() const { return counted_ + 1; }
  [[nodiscard]] const_iterator end() const { return counted_ + 1 + *counted_; }
  [[nodiscard]] size_t operator[](size_t i) const { return counted_[i + 1]; }
  [[nodiscard]] size_t front() const { return counted_[1]; }
  [[nodiscard]] std::vector<size_t> ToVector() const { return {begin(), end()}; }

  friend bool operator==(const NodeIndices& a, const std::vector<size_t>& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

 private:
  static constexpr uint32_t kNone = 0;
  const uint32_t* counted_ = &kNone;
};

}  // namespace collage
