#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "collage/backend/xsmm/forms.h"
#include "collage/backend/xsmm/program.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"

namespace collage::xsmm {

/// Of the function's parameters when it is run in this form.
std::vector<Layout> InputLayouts(const Chain& chain, const Form& form);

/// A kernel that runs a program on so many threads as it has pieces, in one parallel region.
std::unique_ptr<Kernel> MakeProgramKernel(std::vector<Port> inputs, Port output, std::optional<size_t> accumulated_input,
                                          std::shared_ptr<const Program> program);

/// Generates code and packs the constants. `size` is one of the form's, or another.
Result<std::unique_ptr<Kernel>> MakeKernel(const Chain& chain, const Form& form, int64_t size, const Device& device);

}  // namespace collage::xsmm
