#pragma once

// The bytes of saved kernels: numbers of eight bytes, and texts behind their length.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collage/runtime/kernel.h"
#include "collage/tensor/tensor.h"

namespace collage::artifact {

class ArtifactWriter {
 public:
  void Number(uint64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void Text(std::string_view text);
  void Type(const TensorType& type);
  void Ports(const std::vector<Port>& ports);
  void Tensors(const std::vector<Tensor>& tensors);
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// The reverse. What is damaged is an error, whatever the bytes are.
class ArtifactReader {
 public:
  explicit ArtifactReader(std::string_view bytes) : bytes_(bytes) {}

  Result<uint64_t> Number();
  Result<std::string_view> Text();
  /// A count of things that take at least eight bytes each.
  Result<uint64_t> Count();
  Result<TensorType> Type();
  Result<std::vector<Port>> Ports();
  Result<std::vector<Tensor>> Tensors();
  [[nodiscard]] bool AtEnd() const { return bytes_.empty(); }
  static tl::unexpected<Error> Damaged() { return Fail("the saved kernel is damaged"); }

 private:
  std::string_view bytes_;
};

}  // namespace collage::artifact
