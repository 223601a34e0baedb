#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "collage/support/result.h"

namespace collage {

/// The whole content of a regular file, or an error that names it and the operating system's reason.
Result<std::string> ReadFile(const std::filesystem::path& path);

/// A file that is written whole or not at all: into a temporary file of the same folder, synced and renamed over `path` by
/// Commit. Without Commit nothing is left behind; where the file system can, not by a killed process either, because the file has no
/// name until it is whole. What a symbolic link names is replaced, not the link; a device or a pipe (/dev/null, /dev/stdout) cannot be
/// replaced and is written to directly.
class AtomicFile {
 public:
  static Result<AtomicFile> Create(const std::filesystem::path& path_or_link);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  Status Append(std::string_view content);
  Status Commit();

 private:
  enum class Kind {
    kNameless,  ///< gets its name by Commit
    kNamed,     ///< has a temporary name
    kDevice,
  };
  AtomicFile(std::filesystem::path path, Kind kind, std::string temporary, int file);
  [[nodiscard]] tl::unexpected<Error> Failed() const;
  [[nodiscard]] bool Publish();

  std::filesystem::path path_;
  Kind kind_;
  std::string temporary_;  ///< empty while the file has no name
  int file_ = -1;
};

/// Whether AtomicFile could be made there now, for those who will write much later. An error names the path and the reason.
Status CheckWritable(const std::filesystem::path& path);

/// Writes a file whole or not at all: into a temporary file of the same folder, synced, then renamed over `path`.
Status WriteFileAtomically(const std::filesystem::path& path, std::string_view content);

}  // namespace collage
