#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collage/support/file.h"
#include "collage/support/mapped_file.h"
#include "collage/support/mappings.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

// One file of numbered blobs, each starting at a multiple of 64 bytes so that tensors can be used where they are mapped:
//
//     header: magic (8 bytes), format version (4)
//     blobs, in any order, with zeros between them
//     table:  offset and size of every blob (8 + 8)
//     footer: number of blobs (8), checksum (8), another magic (8)
//
// Numbers are little-endian. The checksum is XXH3-64 of all that stands before it. What is known last stands last, so that a writer needs
// neither to seek nor to keep what it has written.

struct TableEntry {
  uint64_t offset;
  uint64_t bytes;
};

class Checksum;

/// Writes blobs as they come, atomically. What cannot be written is told by Commit.
class ContainerWriter {
 public:
  /// Errors as those of AtomicFile.
  static Result<ContainerWriter> Create(const std::filesystem::path& path);
  ContainerWriter(ContainerWriter&& other) noexcept;
  ContainerWriter& operator=(ContainerWriter&&) = delete;
  ~ContainerWriter();

  /// The number of the new blob.
  size_t Add(std::string_view content);
  /// The number of a blob with this content: profiles of one model have most weights in common, each with tensors of its own. A file's
  /// memory is given back.
  size_t Add(const Tensor& tensor);
  /// The number of a blob that is empty unless it is filled.
  size_t Reserve();
  void Fill(size_t index, std::string_view content);
  [[nodiscard]] Status Commit();

 private:
  explicit ContainerWriter(AtomicFile file);
  void Append(std::string_view content);

  AtomicFile file_;
  Status status_;  // the first error
  uint64_t end_ = 0;
  std::unique_ptr<Checksum> checksum_;
  std::vector<TableEntry> table_;
  std::unordered_multimap<uint64_t, std::pair<size_t, Tensor>> tensors_;  // by a hash of their content
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
