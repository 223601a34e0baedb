#include "tools/plugins.h"

#include <cstdlib>
#include <filesystem>

#include "collage/backend/registry.h"
#include "tools/command.h"

namespace collage::tools {

OptionError::OptionError(const collage::Error& error) : CLI::ParseError("OptionError", error.message, kUserError) {}

Status UsePlugins(const std::vector<std::string>& files) {
  constexpr const char* kVariable = "COLLAGE_BACKENDS";
  for (const std::string& file : files) {
    const std::filesystem::path path = std::filesystem::absolute(file);
    if (!std::filesystem::is_regular_file(path)) return Fail("plugin " + path.string() + ": there is no such file");
    COLLAGE_TRY_STATUS(AddBackend(path));
    const char* before = std::getenv(kVariable);
    const std::string places = before ? before : "";
    const bool is_there = (":" + places + ":").find(":" + path.string() + ":") != std::string::npos;
    if (!is_there) ::setenv(kVariable, (places.empty() ? path.string() : places + ":" + path.string()).c_str(), /*overwrite=*/1);
  }
  return {};
}

void AddPluginOption(CLI::App& command) {
  command.add_option_function<std::vector<std::string>>(
      "--plugin",
      [](const std::vector<std::string>& files) {
        const Status used = UsePlugins(files);
        if (!used) throw OptionError(used.error());
      },
      "The shared object of a backend that does not come with Collage (repeat). Its code runs in this process");
}

}  // namespace collage::tools
