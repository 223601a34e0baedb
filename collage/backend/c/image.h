#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collage/backend/shared_code.h"
#include "collage/ir/op_sequence.h"
#include "collage/runtime/kernel.h"
#include "collage/tensor/tensor.h"

namespace collage::c_source {

/// A function of the generated code: void name(void* const* tensors, int begin, int end), for items of [begin, end).
struct Loop {
  std::string name;
  size_t items = 0;
  size_t grain = 1;  ///< fewer items are not worth another thread
  /// Numbers of tensors: inputs, outputs, constants and what lies between loops, counted through in this order. The last is written.
  std::vector<size_t> tensors;
};

/// What a kernel consists of; also what is saved.
struct KernelImage {
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<Tensor> constants;
  std::vector<size_t> between;  ///< bytes of each tensor between loops
  std::vector<Loop> loops;
  std::string source;                                ///< C
  std::shared_ptr<const artifact::LinkedCode> code;  ///< made of it; null before it is compiled

  [[nodiscard]] size_t TensorCount() const { return inputs.size() + outputs.size() + constants.size() + between.size(); }
};

/// All but the machine code. Of functions that element_code::SupportsSequence accepts.
Result<KernelImage> GenerateImage(const OpSequence& sequence);

/// As bytes. `processor` identifies the machine that the code was made for.
std::string WriteImage(const KernelImage& image, const std::string& processor);
/// The reverse; errors on damaged bytes, another version of the format or another processor.
Result<KernelImage> ReadImage(std::string_view bytes, const std::string& processor);

}  // namespace collage::c_source
