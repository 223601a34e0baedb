#pragma once

#include <memory>
#include <vector>

#include "collage/backend/xsmm/forms.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"

namespace collage::xsmm {

/// Of the function's parameters when it is run in this form.
std::vector<Layout> InputLayouts(const Chain& chain, const Form& form);

/// Generates code and packs the constants. `size` is one of the form's, or another.
Result<std::unique_ptr<Kernel>> MakeKernel(const Chain& chain, const Form& form, int64_t size, const Device& device);

}  // namespace collage::xsmm
