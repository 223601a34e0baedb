#pragma once

#include <filesystem>

#include "collage/support/result.h"

namespace collage {

/// Constant memory whose content is in a file as well: its pages can be given back (support/mappings.h), and are read again where somebody
/// looks. The file has no name, and ends with this and what it took.
class BackedMemory {
 public:
  /// Errors name the folder, and the operating system's reason, or say that files there are memory themselves.
  static Result<BackedMemory> Create(const std::filesystem::path& folder);
  BackedMemory(BackedMemory&& other) noexcept;
  BackedMemory& operator=(BackedMemory&&) = delete;
  ~BackedMemory();

  /// Takes the whole pages of some bytes that nobody may write any more: from now on they are the file's, at the same addresses, until
  /// their block is freed. What is no large block of AllocateBuffer, or was taken before, is left as it is. Errors of writing leave it,
  /// too.
  Status Take(const void* data, size_t bytes);
  /// Waits until all is written, so that no writing disturbs what is measured later.
  [[nodiscard]] Status Finish() const;

 private:
  explicit BackedMemory(int file) : file_(file) {}

  int file_;
  size_t used_ = 0;
};

}  // namespace collage
