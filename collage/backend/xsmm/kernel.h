#pragma once

#include <memory>
#include <vector>

#include "collage/backend/xsmm/forms.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"

namespace collage::xsmm {

/// Of the function's parameters when it is run in this form.
std::vector<Layout> InputLayouts(const Chain& chain, const Form& form);

/// Generates code for tiles of at most `tile_rows` rows and packs the constants.
Result<std::unique_ptr<Kernel>> MakeKernel(const Chain& chain, const Form& form, int64_t tile_rows, const Device& device);

}  // namespace collage::xsmm
