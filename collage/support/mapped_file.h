#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "collage/support/result.h"

namespace collage {

/// A regular file in memory, read where it lies: what nobody looks at takes none. It must not be cut short meanwhile.
class MappedFile {
 public:
  /// Errors name the file and the operating system's reason.
  static Result<MappedFile> Open(const std::filesystem::path& path);

  [[nodiscard]] std::string_view content() const { return content_; }
  /// Keeps the content alive.
  [[nodiscard]] const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  MappedFile() = default;

  std::shared_ptr<const void> owner_;
  std::string_view content_;
};

}  // namespace collage
