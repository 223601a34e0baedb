#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace collage {

/// What a model says of itself (ModelProto of ONNX), under the names of ONNX Runtime.
struct ModelMetadata {
  std::string producer_name;
  std::string graph_name;
  std::string domain;
  std::string description;
  std::string graph_description;
  int64_t version = 0;
  std::map<std::string, std::string> custom_metadata_map;  ///< metadata_props
};

}  // namespace collage
