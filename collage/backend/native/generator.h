#pragma once

#include "collage/backend/backend.h"
#include "collage/backend/native/codegen/generate.h"

namespace collage::native {

/// Whether the code generator is installed beside this backend (it is not opened).
Presence ProbeGenerator();
/// Opens the code generator on first use and compiles.
Result<GeneratedCode> GenerateWithHalide(const GenerateRequest& request);

}  // namespace collage::native
