#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "collage/support/result.h"
#include "tools/command.h"

namespace collage::tools {

/// "collage: message" on standard error; gives the exit code of a user error.
int ReportError(const Error& error);

/// Writes JSON to a file, or to standard output when `path` is "-".
Status WriteJson(const std::string& path, const nlohmann::ordered_json& value);

}  // namespace collage::tools
