#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/backend/native/row_split.h"

namespace collage::native {

/// A library's kernels for some of the rows of a function, each for one thread: a library's own threads inside of ours would be a second
/// team.
class LibraryKernels {
 public:
  /// `sequence` and `split` must outlive it. Errors when the library is absent.
  static Result<LibraryKernels> Open(const std::string& library, const OpSequence& sequence, const RowSplit& split, const Device& device);

  [[nodiscard]] std::string Version() const { return backend_->Probe(device_).version; }
  /// Those that take and give plain tensors.
  [[nodiscard]] Result<std::vector<Variant>> Variants(int64_t rows) const;
  /// The variant of that name; with `may_differ` another one where it does not exist for so many rows.
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(int64_t rows, const std::string& name, bool may_differ) const;

 private:
  LibraryKernels(const Backend* backend, const OpSequence* sequence, const RowSplit* split, const Device& device)
      : backend_(backend), sequence_(sequence), split_(split), device_(device) {}

  const Backend* backend_;
  const OpSequence* sequence_;
  const RowSplit* split_;
  Device device_;
};

}  // namespace collage::native
