#include "collage/support/index_set.h"

#include <algorithm>
#include <bit>

#include "collage/support/check.h"
#include "collage/support/hash.h"

namespace collage {

IndexSet::IndexSet(const std::vector<size_t>& indices) {
  if (indices.empty()) return;
  const auto [low, high] = std::minmax_element(indices.begin(), indices.end());
  Cover(*low / 64, *high / 64 - *low / 64 + 1);
  for (size_t index : indices) words_[index / 64 - first_word_] |= uint64_t{1} << (index % 64);
}

uint64_t IndexSet::Word(size_t word) const {
  return word >= first_word_ && word - first_word_ < words_.size() ? words_[word - first_word_] : 0;
}

bool IndexSet::Contains(size_t index) const { return (Word(index / 64) >> (index % 64)) & 1; }

void IndexSet::Cover(size_t first_word, size_t word_count) {
  if (words_.empty()) {
    first_word_ = first_word;
    words_.Widen(0, word_count);
    return;
  }
  const size_t end = first_word + word_count;
  const size_t old_end = first_word_ + words_.size();
  const size_t before = first_word < first_word_ ? first_word_ - first_word : 0;
  const size_t behind = end > old_end ? end - old_end : 0;
  if (before == 0 && behind == 0) return;
  words_.Widen(before, behind);
  first_word_ -= before;
}

void IndexSet::Trim() {
  size_t begin = 0;
  size_t end = words_.size();
  while (end > begin && words_[end - 1] == 0) --end;
  while (begin < end && words_[begin] == 0) ++begin;
  words_.Keep(begin, end - begin);
  first_word_ = words_.empty() ? 0 : first_word_ + begin;
}

void IndexSet::Add(size_t index) {
  Cover(index / 64, 1);
  words_[index / 64 - first_word_] |= uint64_t{1} << (index % 64);
}

void IndexSet::Remove(size_t index) {
  if (!Contains(index)) return;
  words_[index / 64 - first_word_] &= ~(uint64_t{1} << (index % 64));
  Trim();
}

size_t IndexSet::Count() const {
  size_t count = 0;
  for (uint64_t word : words_) count += static_cast<size_t>(std::popcount(word));
  return count;
}

size_t IndexSet::First() const {
  COLLAGE_CHECK(!Empty());
  return first_word_ * 64 + static_cast<size_t>(std::countr_zero(words_[0]));
}

size_t IndexSet::Last() const {
  COLLAGE_CHECK(!Empty());
  return (first_word_ + words_.size()) * 64 - 1 - static_cast<size_t>(std::countl_zero(words_[words_.size() - 1]));
}

size_t IndexSet::NextFrom(size_t index) const {
  size_t word = std::max(index / 64, first_word_);
  uint64_t mask = word == index / 64 ? ~uint64_t{0} << (index % 64) : ~uint64_t{0};
  for (; word < first_word_ + words_.size(); ++word, mask = ~uint64_t{0}) {
    if (const uint64_t bits = words_[word - first_word_] & mask; bits != 0) {
      return word * 64 + static_cast<size_t>(std::countr_zero(bits));
    }
  }
  return npos;
}

bool IndexSet::Intersects(const IndexSet& other) const {
  const size_t begin = std::max(first_word_, other.first_word_);
  const size_t end = std::min(first_word_ + words_.size(), other.first_word_ + other.words_.size());
  for (size_t word = begin; word < end; ++word) {
    if (words_[word - first_word_] & other.words_[word - other.first_word_]) return true;
  }
  return false;
}

bool IndexSet::IsSubsetOf(const IndexSet& other) const {
  for (size_t w = 0; w < words_.size(); ++w) {
    if (words_[w] & ~other.Word(first_word_ + w)) return false;
  }
  return true;
}

IndexSet& IndexSet::operator|=(const IndexSet& other) {
  if (other.Empty()) return *this;
  Cover(other.first_word_, other.words_.size());
  for (size_t w = 0; w < other.words_.size(); ++w) words_[other.first_word_ + w - first_word_] |= other.words_[w];
  return *this;
}

IndexSet& IndexSet::operator&=(const IndexSet& other) {
  for (size_t w = 0; w < words_.size(); ++w) words_[w] &= other.Word(first_word_ + w);
  Trim();
  return *this;
}

IndexSet& IndexSet::operator-=(const IndexSet& other) {
  for (size_t w = 0; w < words_.size(); ++w) words_[w] &= ~other.Word(first_word_ + w);
  Trim();
  return *this;
}

bool operator<(const IndexSet& a, const IndexSet& b) {
  size_t i = a.NextFrom(0);
  size_t j = b.NextFrom(0);
  while (i != IndexSet::npos && j != IndexSet::npos) {
    if (i != j) return i < j;
    i = a.NextFrom(i + 1);
    j = b.NextFrom(j + 1);
  }
  return i == IndexSet::npos && j != IndexSet::npos;
}

std::vector<size_t> IndexSet::ToVector() const {
  std::vector<size_t> indices;
  indices.reserve(Count());
  ForEach([&](size_t index) { indices.push_back(index); });
  return indices;
}

uint64_t IndexSet::Hash() const {
  uint64_t hash = first_word_;
  for (uint64_t word : words_) hash = HashCombine(hash, word);
  return hash;
}

std::string IndexSet::ToString() const {
  std::string text = "{";
  ForEach([&](size_t index) { text += (text.size() > 1 ? ", " : "") + std::to_string(index); });
  return text + "}";
}

}  // namespace collage
