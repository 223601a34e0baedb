#pragma once

#include <cstddef>
#include <memory>

namespace collage {

/// One block of zeroed memory, 64-byte aligned (a large one to whole huge pages), with every page touched: the first run must
/// not pay for page faults.
class Arena {
 public:
  explicit Arena(size_t bytes);

  [[nodiscard]] std::byte* data() const { return data_.get(); }
  [[nodiscard]] size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t bytes_;
};

}  // namespace collage
