#pragma once

#include <filesystem>
#include <string>
#include <variant>

#include "collage/onnx/reader.h"
#include "collage/support/result.h"

namespace collage {

/// What a user has a model in: an ONNX model, or a program in Relay's text (relay_program.h). Opened once, read for each profile.
class ModelFile {
 public:
  /// `constants`: the archive of a program's constants; empty: the one beside it. An ONNX model takes none. Errors name the file.
  static Result<ModelFile> Open(const std::filesystem::path& path, const std::filesystem::path& constants = {});
  /// The types of a program are fixed: a shape that is stated for an input must be the one that it has.
  [[nodiscard]] Result<OnnxModel> Read(const ReadOptions& options) const;
  /// The model as it is written; null for a program.
  [[nodiscard]] const onnx_io::OnnxGraph* graph() const;

 private:
  ModelFile(std::filesystem::path path, std::variant<OnnxFile, OnnxModel> content) : path_(std::move(path)), content_(std::move(content)) {}

  std::filesystem::path path_;
  std::variant<OnnxFile, OnnxModel> content_;  // a program is read whole at once
};

/// Which model a file holds, as a hash of its bytes, and of those of a program's constants; of files beside an ONNX model, which hold
/// weights, nothing is read. Errors name the file.
Result<std::string> ModelIdentity(const std::filesystem::path& path, const std::filesystem::path& constants = {});

}  // namespace collage
