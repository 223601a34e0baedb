#pragma once

// Whole numbers in a list of doubles, which is what a cache keeps.

#include <cstddef>
#include <utility>
#include <vector>

namespace collage {

/// Lists are written as their length and their elements.
class NumberWriter {
 public:
  void Add(size_t number) { numbers_.push_back(static_cast<double>(number)); }
  template <class List, class AddOne>
  void AddList(const List& list, const AddOne& add_one) {
    Add(list.size());
    for (const auto& one : list) add_one(one);
  }
  [[nodiscard]] std::vector<double> Numbers() && { return std::move(numbers_); }

 private:
  std::vector<double> numbers_;
};

/// Gives zeros where there is nothing more, and says so.
class NumberReader {
 public:
  explicit NumberReader(const std::vector<double>& numbers) : numbers_(numbers) {}
  size_t Next() {
    constexpr double kMost = 0x1p53;  // up to it doubles are whole numbers
    is_whole_ = is_whole_ && at_ < numbers_.size() && numbers_[at_] <= kMost;
    return is_whole_ ? static_cast<size_t>(numbers_[at_++]) : 0;
  }
  template <class ReadOne>
  auto NextList(const ReadOne& read_one) {
    std::vector<decltype(read_one())> list;
    for (size_t left = Next(); left > 0 && is_whole_; --left) list.push_back(read_one());
    return list;
  }
  [[nodiscard]] bool IsWhole() const { return is_whole_ && at_ == numbers_.size(); }

 private:
  const std::vector<double>& numbers_;
  size_t at_ = 0;
  bool is_whole_ = true;
};

}  // namespace collage
