#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collage/ir/module.h"
#include "collage/onnx/remainder.h"
#include "collage/runtime/executable.h"
#include "collage/support/result.h"

namespace collage {

/// A model for the reference executor: no passes, no backends, only the operators' own kernels.
struct ReferenceProgram {
  IRModule module;
  std::vector<NamedType> inputs;
  std::vector<NamedType> outputs;              ///< of the module
  std::shared_ptr<const Remainder> remainder;  ///< what runs behind it; null where nothing does

  [[nodiscard]] Result<std::vector<Tensor>> Run(const std::vector<Tensor>& tensors) const;
};

/// Of a model file (model_file.h).
Result<ReferenceProgram> ReadReferenceProgram(const std::filesystem::path& model, const std::map<std::string, Shape>& input_shapes,
                                              const std::filesystem::path& constants = {});

}  // namespace collage
