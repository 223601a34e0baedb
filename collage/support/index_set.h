#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collage/support/small_words.h"

namespace collage {

/// A set of indices (PostDfsIndex) as a bit vector. Storage covers only the words between the smallest and largest
/// member, so that a small sub-graph of a 10 000-node function costs a few words, not 10 000 bits: candidates number in
/// the ten thousands, and a dense vector per candidate would make memory quadratic in the size of the model.
class IndexSet {
 public:
  IndexSet() = default;
  explicit IndexSet(const std::vector<size_t>& indices);

  [[nodiscard]] bool Contains(size_t index) const;
  void Add(size_t index);
  void Remove(size_t index);

  [[nodiscard]] bool Empty() const { return words_.empty(); }
  [[nodiscard]] size_t Count() const;
  /// Smallest member; the set must not be empty.
  [[nodiscard]] size_t First() const;
  /// Largest member; the set must not be empty.
  [[nodiscard]] size_t Last() const;
  /// Smallest member greater than or equal to `index`, or `npos`.
  [[nodiscard]] size_t NextFrom(size_t index) const;
  static constexpr size_t npos = static_cast<size_t>(-1);

  [[nodiscard]] bool Intersects(const IndexSet& other) const;
  [[nodiscard]] bool IsSubsetOf(const IndexSet& other) const;
  IndexSet& operator|=(const IndexSet& other);
  IndexSet& operator&=(const IndexSet& other);
  IndexSet& operator-=(const IndexSet& other);
  friend IndexSet operator|(IndexSet a, const IndexSet& b) { return a |= b; }
  friend IndexSet operator&(IndexSet a, const IndexSet& b) { return a &= b; }
  friend IndexSet operator-(IndexSet a, const IndexSet& b) { return a -= b; }
  friend bool operator==(const IndexSet& a, const IndexSet& b) = default;
  /// Lexicographic order of the ascending member lists (the last tie-break of the search).
  friend bool operator<(const IndexSet& a, const IndexSet& b);

  /// Calls `visit(index)` for every member in ascending order.
  template <class Visitor>
  void ForEach(Visitor&& visit) const {
    for (size_t w = 0; w < words_.size(); ++w) {
      for (uint64_t word = words_[w]; word != 0; word &= word - 1) {
        visit((first_word_ + w) * 64 + static_cast<size_t>(__builtin_ctzll(word)));
      }
    }
  }
  [[nodiscard]] std::vector<size_t> ToVector() const;
  [[nodiscard]] uint64_t Hash() const;
  /// "{0, 3, 4}".
  [[nodiscard]] std::string ToString() const;

 private:
  void Cover(size_t first_word, size_t word_count);
  void Trim();
  [[nodiscard]] uint64_t Word(size_t word) const;

  // Invariant: words_ is empty, or its first and last words are not zero; so equality is memberwise.
  size_t first_word_ = 0;
  SmallWords words_;
};

}  // namespace collage

template <>
struct std::hash<collage::IndexSet> {
  size_t operator()(const collage::IndexSet& set) const { return set.Hash(); }
};
