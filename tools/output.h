#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "collage/support/file.h"
#include "collage/support/result.h"
#include "tools/command.h"

namespace collage::tools {

/// "collage: message" on standard error; gives the exit code of a user error.
int ReportError(const Error& error);

/// Writes JSON to a file, or to standard output when `path` is "-".
Status WriteJson(const std::string& path, const nlohmann::ordered_json& value);

/// A report for programs, at `path`, "-" (standard output) or nowhere (empty). It is opened before the work that it reports, so that a
/// path that cannot be written costs no time.
class JsonOutput {
 public:
  static Result<JsonOutput> Create(const std::string& path);

  /// Where people read: standard output, unless the report goes there.
  [[nodiscard]] std::FILE* Text() const { return path_ == "-" ? stderr : stdout; }
  Status Write(const std::string& text);
  Status WriteValue(const nlohmann::ordered_json& value);

 private:
  explicit JsonOutput(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::optional<AtomicFile> file_;
};

/// An error when something that was printed did not arrive, as on a full disk.
Status FlushStandardOutput();

}  // namespace collage::tools
