#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collage/backend/partition_program.h"
#include "collage/op/remainder.h"
#include "collage/runtime/container.h"
#include "collage/runtime/control_program.h"
#include "collage/runtime/device.h"

namespace collage {

/// A program as it stands in a file: its kernels are text and, where their backends give any, artifacts.
struct StoredProgram {
  struct StoredKernel {
    std::optional<size_t> artifact;  // number of its blob
    std::string text;                // of its function; may be empty when there is an artifact
    std::vector<Tensor> constants;   // of the text
  };
  Device device;
  std::string fingerprint;
  PartitionProgram program;  // without functions
  std::vector<StoredKernel> kernels;
  ControlProgram control;             // without control flow and with one profile it has no functions
  std::vector<StoredProgram> blocks;  // of it
  Remainders remainders;              // behind its profiles
};

/// Puts the tensors into `writer`; the JSON refers to them by number.
nlohmann::json ToJson(const StoredProgram& stored, ContainerWriter& writer);
/// Errors on JSON that ToJson does not write. Tensors are views into the container.
Result<StoredProgram> StoredProgramFromJson(const nlohmann::json& json, const Container& container);

}  // namespace collage
