#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace collage {

/// A sequence of 64-bit words of which two lie in the object itself: most sets of a few neighbouring nodes fit, and a search
/// copies millions of them.
class SmallWords {
 public:
  SmallWords() = default;
  SmallWords(const SmallWords& other) { CopyFrom(other); }
  SmallWords(SmallWords&& other) noexcept { StealFrom(other); }
  SmallWords& operator=(const SmallWords& other) {
    if (this == &other) return *this;
    if (other.size_ <= capacity_) {
      size_ = other.size_;
      std::copy_n(other.data(), size_, data());
    } else {
      Free();
      CopyFrom(other);
    }
    return *this;
  }
  SmallWords& operator=(SmallWords&& other) noexcept {
    if (this == &other) return *this;
    Free();
    StealFrom(other);
    return *this;
  }
  ~SmallWords() { Free(); }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] uint64_t* data() { return capacity_ == kInline ? inline_ : heap_; }
  [[nodiscard]] const uint64_t* data() const { return capacity_ == kInline ? inline_ : heap_; }
  uint64_t& operator[](size_t i) { return data()[i]; }
  uint64_t operator[](size_t i) const { return data()[i]; }
  [[nodiscard]] const uint64_t* begin() const { return data(); }
  [[nodiscard]] const uint64_t* end() const { return data() + size_; }

  /// Zeros before and behind, as many as asked for.
  void Widen(size_t before, size_t behind) {
    const size_t size = size_ + before + behind;
    if (size > capacity_) {
      auto* grown = new uint64_t[size];
      std::copy_n(data(), size_, grown + before);
      Free();
      heap_ = grown;
      capacity_ = static_cast<uint32_t>(size);
    } else {
      std::memmove(data() + before, data(), size_ * sizeof(uint64_t));
    }
    std::fill_n(data(), before, 0);
    std::fill_n(data() + before + size_, behind, 0);
    size_ = static_cast<uint32_t>(size);
  }
  /// Keeps `count` words from `begin` on.
  void Keep(size_t begin, size_t count) {
    std::memmove(data(), data() + begin, count * sizeof(uint64_t));
    size_ = static_cast<uint32_t>(count);
  }

  friend bool operator==(const SmallWords& a, const SmallWords& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

 private:
  static constexpr uint32_t kInline = 2;

  void CopyFrom(const SmallWords& other) {
    size_ = other.size_;
    capacity_ = std::max(size_, kInline);
    if (capacity_ > kInline) heap_ = new uint64_t[capacity_];
    std::copy_n(other.data(), size_, data());
  }
  void StealFrom(SmallWords& other) {
    size_ = other.size_;
    capacity_ = other.capacity_;
    if (capacity_ == kInline) {
      std::copy_n(other.inline_, kInline, inline_);
    } else {
      heap_ = other.heap_;
    }
    other.size_ = 0;
    other.capacity_ = kInline;
  }
  void Free() {
    if (capacity_ > kInline) delete[] heap_;
  }

  uint32_t size_ = 0;
  uint32_t capacity_ = kInline;
  union {
    uint64_t inline_[kInline] = {0, 0};
    uint64_t* heap_;
  };
};

}  // namespace collage
