#pragma once

#include <string>

#include "collage/support/result.h"

namespace collage::tools {

/// A compiled file as an HTML page (collage/explain/page.h), `metadata` being the file's. Runs the program a few times for its time line
/// where `run` permits that; a program that cannot run here gets predicted times, and the page says why. Errors are of the metadata.
Result<std::string> PageOf(const std::string& file, const std::string& metadata, bool run);

}  // namespace collage::tools
