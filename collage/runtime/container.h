#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collage/support/mapped_file.h"
#include "collage/support/mappings.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

// One file of numbered blobs, each starting at a multiple of 64 bytes so that tensors can be used where they are mapped:
//
//     header: magic (8 bytes), format version (4), number of blobs (4), bytes of the file (8), checksum (8)
//     table:  offset and size of every blob (8 + 8)
//     blobs, with zeros between them
//
// Numbers are little-endian. The checksum is XXH3-64 of everything else in the file, header included.

/// Collects blobs and writes them, streamed and atomically.
class ContainerWriter {
 public:
  /// The number of the new blob.
  size_t Add(std::string content);
  /// The number of a blob with this content: profiles of one model have most weights in common, each with tensors of its own. The content
  /// is not copied.
  size_t Add(const Tensor& tensor);
  /// Gives a blob another content.
  void Replace(size_t index, std::string content) { blobs_[index] = {std::move(content), {}}; }
  [[nodiscard]] Status Write(const std::filesystem::path& path) const;

 private:
  struct Blob {
    std::string text;
    Tensor tensor;  // when defined, instead of the text
    [[nodiscard]] std::string_view Content() const;
  };
  std::vector<Blob> blobs_;
  std::unordered_multimap<uint64_t, size_t> tensors_;  // by a hash of their content
};

/// A written file, mapped into memory.
class Container {
 public:
  /// True when the file begins as a container does. Errors when it cannot be read.
  static Result<bool> IsContainer(const std::filesystem::path& path);
  /// Errors name the file and say whether it is foreign, of another format version, truncated or damaged.
  static Result<Container> Open(const std::filesystem::path& path);
  /// As above, of bytes that `owner` keeps alive, at a multiple of 64 bytes; errors begin with `name`.
  static Result<Container> Of(std::string_view bytes, std::shared_ptr<const void> owner, const std::string& name);

  [[nodiscard]] size_t size() const { return blobs_.size(); }
  [[nodiscard]] std::string_view blob(size_t index) const { return blobs_[index]; }
  /// Gives back the memory of blobs that were read and are packed elsewhere by now; any may be read again.
  void Forget() const { GiveBack(mapped_.data(), mapped_.size()); }
  /// Keeps the mapping, and so all blobs, alive.
  [[nodiscard]] const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  Container() = default;

  std::shared_ptr<const void> owner_;
  std::string_view mapped_;  // the whole file; empty where the bytes are somebody's memory
  std::vector<std::string_view> blobs_;
};

}  // namespace collage
