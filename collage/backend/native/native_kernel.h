#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collage/backend/shared_code.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"
#include "collage/tensor/tensor.h"

namespace collage::native {

/// What a generated kernel consists of; also what is saved.
struct KernelImage {
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<Tensor> constants;
  std::shared_ptr<const artifact::LinkedCode> code;  ///< defines kEntryName
};

/// Of all kernels of this process.
artifact::SharedCodes& Codes();
/// Errors on code without kEntryName.
Result<std::unique_ptr<Kernel>> MakeKernel(KernelImage image, const Device& device);
/// From what Serialize gave; code made for another kind of processor is refused.
Result<std::unique_ptr<Kernel>> LoadKernel(std::string_view artifact, const Device& device);

}  // namespace collage::native
