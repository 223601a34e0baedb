#pragma once

// Where the bytes of a model's tensors lie: in the model itself, or in files beside it. They are read where they lie.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collage/support/mapped_file.h"
#include "collage/support/result.h"

namespace collage::onnx_message {
class TensorProto;
}  // namespace collage::onnx_message

namespace collage::onnx_io {

/// Bytes, and who keeps them alive; null where that is the caller.
struct TensorBytes {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
};

/// The bytes of a model in two: its message without the raw data of the graph's initializers, and those, one for each initializer (nothing
/// where it has none). A message parser would copy all weights, and takes no more than 2 GiB.
struct SplitModel {
  std::string message;
  std::vector<std::optional<std::string_view>> raw_data;
};
/// Nothing where the bytes are no message of that form; a parser of messages says why.
std::optional<SplitModel> SplitRawData(std::string_view bytes);

/// The files in which a model keeps tensors, each mapped once.
class ExternalFiles {
 public:
  /// Locations are relative to `directory`; where that is empty there are none. A file must lie in it or in `folder_of_model`, links
  /// followed: a model's own links lead there where the model is one as well. Without links, or empty.
  ExternalFiles(std::filesystem::path directory, std::filesystem::path folder_of_model)
      : directory_(std::move(directory)), folder_of_model_(std::move(folder_of_model)) {}

  /// The `bytes` bytes of a tensor whose data location is EXTERNAL. Errors say which file, place or number is wrong.
  Result<TensorBytes> Find(const onnx_message::TensorProto& message, size_t bytes);

 private:
  Result<const MappedFile*> Open(const std::string& location);

  std::filesystem::path directory_;
  std::filesystem::path folder_of_model_;
  std::map<std::string, MappedFile> files_;  // by location
};

}  // namespace collage::onnx_io
