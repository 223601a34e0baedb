#pragma once

#include <filesystem>

#include "collage/support/result.h"

namespace collage {

/// A lock among processes, held until it is destroyed or its process ends, however that ends. The file stays: who deletes it while others
/// wait would let two in.
class FileLock {
 public:
  /// Waits until no other process holds it. Errors name the file and the operating system's reason.
  static Result<FileLock> Wait(const std::filesystem::path& path);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int file) : file_(file) {}
  int file_;
};

}  // namespace collage
