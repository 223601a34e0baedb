#include "tools/output.h"

#include <cerrno>
#include <cstring>

namespace collage::tools {

int ReportError(const Error& error) {
  std::fprintf(stderr, "collage: %s\n", error.message.c_str());
  return kUserError;
}

Status WriteJson(const std::string& path, const nlohmann::ordered_json& value) {
  return COLLAGE_TRY(JsonOutput::Create(path)).WriteValue(value);
}

Result<JsonOutput> JsonOutput::Create(const std::string& path) {
  JsonOutput output(path);
  if (!path.empty() && path != "-") output.file_.emplace(COLLAGE_TRY(AtomicFile::Create(path)));
  return output;
}

Status JsonOutput::Write(const std::string& text) {
  if (path_ == "-") std::fputs(text.c_str(), stdout);
  if (!file_) return {};
  COLLAGE_TRY_STATUS(file_->Append(text));
  return file_->Commit();
}

Status JsonOutput::WriteValue(const nlohmann::ordered_json& value) {
  // Names from a model may hold any bytes; what is no UTF-8 is replaced rather than thrown at.
  return Write(value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

Status FlushStandardOutput() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return Fail(std::string("standard output: cannot be written: ") + std::strerror(errno));
}

}  // namespace collage::tools
