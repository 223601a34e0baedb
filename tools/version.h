#pragma once

namespace collage::tools {

/// Of the checkout that this was built from (cmake/GitVersion.cmake): "0.1.0-gafbeaa2d1c3e-dirty", or "0.1.0" where there was no git.
extern const char* const kVersion;

}  // namespace collage::tools
