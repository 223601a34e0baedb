#pragma once

#include <string>
#include <string_view>

#include "collage/backend/native/native_kernel.h"

namespace collage::native {

/// A kernel as bytes. `processor` identifies the machine that the code was made for.
std::string WriteArtifact(const KernelImage& image, const std::string& processor);
/// The reverse; errors on damaged bytes, another version of the format or another processor.
Result<KernelImage> ReadArtifact(std::string_view artifact, const std::string& processor);

}  // namespace collage::native
