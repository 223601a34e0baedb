#pragma once

#include <string>
#include <utility>
#include <vector>

#include "collage/backend/artifact_bytes.h"
#include "collage/backend/element_code/source.h"
#include "collage/runtime/kernel.h"

namespace collage::element_code {

/// What a kernel on a device of its own is made of, beside its code: buffers by value of the function, and launches that take them.
struct Recipe {
  size_t values = 0;
  std::vector<size_t> parameters;
  std::vector<size_t> results;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<Launch> launches;
  std::vector<size_t> constants;  ///< values
  std::vector<Tensor> tensors;    ///< of each
  std::vector<size_t> intermediate;
  std::vector<size_t> intermediate_bytes;

  [[nodiscard]] std::vector<std::string> KernelNames() const;
  void Write(artifact::ArtifactWriter& writer) const;
  /// Errors are those of damaged bytes. `artifact_bytes` is the size of all that is read.
  static Result<Recipe> Read(artifact::ArtifactReader& reader, size_t artifact_bytes);
};

/// Of the generated source, whose launches are moved.
Recipe RecipeOf(const OpSequence& sequence, GeneratedSource& source);

/// The addresses of a recipe's values as a kernel is run.
class Addresses {
 public:
  explicit Addresses(const Recipe& recipe);

  [[nodiscard]] size_t workspace_bytes() const { return workspace_bytes_; }
  void Set(size_t value, void* address) { addresses_[value] = address; }
  /// As Kernel::Run is given them.
  void Bind(const Recipe& recipe, std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace);
  /// It stays where it is.
  [[nodiscard]] void*& Of(size_t value) { return addresses_[value]; }

 private:
  std::vector<void*> addresses_;  // by value
  std::vector<size_t> offsets_;   // in the workspace, of what lies between kernels
  size_t workspace_bytes_ = 0;
};

}  // namespace collage::element_code
