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
    words_.assign(word_count, 0);
    return;
  }
  if (first_word < first_word_) {
    words_.insert(words_.begin(), first_word_ - first_word, 0);
    first_word_ = first_word;
  }
  const size_t end = first_word + word_count;
  if (end > first_word_ + words_.size()) words_.resize(end - first_word_, 0);
}

void IndexSet::Trim() {
  while (!words_.empty() && words_.back() == 0) words_.pop_back();
  const auto first = std::find_if(words_.begin(), words_.end(), [](uint64_t word) { return word != 0; });
  first_word_ += static_cast<size_t>(first - words_.begin());
  words_.erase(words_.begin(), first);
  if (words_.empty()) first_word_ = 0;
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
  return first_word_ * 64 + static_cast<size_t>(std::countr_zero(words_.front()));
}

size_t IndexSet::Last() const {
  COLLAGE_CHECK(!Empty());
  return (first_word_ + words_.size()) * 64 - 1 - static_cast<size_t>(std::countl_zero(words_.back()));
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
