#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collage/backend/native/panel_kernel.h"
#include "collage/ir/expr.h"
#include "collage/runtime/device.h"

namespace collage::native {

/// All from which a kernel that calls a library is made, for any number of threads; also what is saved.
struct PanelRecipe {
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  int64_t rows_of_panel = 0;
  std::string library;
  std::string library_variant;
  Expr library_function;  ///< for all rows
  std::vector<PanelArgument> library_arguments;
  std::string rest;       ///< the generated kernel for a panel, as saved
  std::string last_rest;  ///< for the last panel; empty where panels divide the rows
  std::vector<PanelArgument> rest_arguments;
};

/// Has the library compile its part, for each thread or with packed weights shared between them. Errors where the library is absent or
/// declines, and where the parts do not fit each other.
Result<std::unique_ptr<Kernel>> MakeKernel(std::shared_ptr<const PanelRecipe> recipe, const Device& device);

bool IsPanelArtifact(std::string_view artifact);
std::string WriteArtifact(const PanelRecipe& recipe);
/// Errors on damaged bytes.
Result<PanelRecipe> ReadPanelArtifact(std::string_view artifact);

}  // namespace collage::native
