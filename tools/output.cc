#include "tools/output.h"

#include <cstdio>

#include "collage/support/file.h"

namespace collage::tools {

int ReportError(const Error& error) {
  std::fprintf(stderr, "collage: %s\n", error.message.c_str());
  return kUserError;
}

Status WriteJson(const std::string& path, const nlohmann::ordered_json& value) {
  // Names from a model may hold any bytes; what is no UTF-8 is replaced rather than thrown at.
  const std::string text = value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (path == "-") {
    std::fputs(text.c_str(), stdout);
    return {};
  }
  return WriteFileAtomically(path, text);
}

}  // namespace collage::tools
