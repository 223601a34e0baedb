#pragma once

// The bytes of saved kernels: numbers of eight bytes, and texts behind their length.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collage/runtime/kernel.h"
#include "collage/tensor/tensor.h"

namespace collage::artifact {

class ArtifactWriter {
 public:
  void Number(uint64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void Text(std::string_view text);
  /// What ArtifactReader::Head reads.
  void Head(std::string_view magic, std::string_view processor);
  void Type(const TensorType& type);
  void Ports(const std::vector<Port>& ports);
  void Numbers(const std::vector<size_t>& numbers);
  void Tensors(const std::vector<Tensor>& tensors);
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// The reverse. What is damaged is an error, whatever the bytes are.
class ArtifactReader {
 public:
  /// Errors begin with the name of the backend that wrote them.
  ArtifactReader(std::string_view bytes, std::string backend) : bytes_(bytes), backend_(std::move(backend)) {}

  Result<uint64_t> Number();
  Result<std::string_view> Text();
  /// What a kernel that holds machine code begins with: who wrote it in which form, and for which processor.
  Status Head(std::string_view magic, std::string_view processor);
  /// A count of things that take at least eight bytes each.
  Result<uint64_t> Count();
  Result<TensorType> Type();
  Result<std::vector<Port>> Ports();
  /// Each below `end`.
  Result<std::vector<size_t>> Numbers(uint64_t end);
  Result<std::vector<Tensor>> Tensors();
  [[nodiscard]] bool AtEnd() const { return bytes_.empty(); }
  [[nodiscard]] tl::unexpected<Error> Damaged() const { return Fail(backend_ + ": the saved kernel is damaged"); }

 private:
  std::string_view bytes_;
  std::string backend_;
};

}  // namespace collage::artifact
