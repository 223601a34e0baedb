#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "collage/tensor/tensor.h"

namespace collage::onnx_io {

struct OnnxGraph;

/// A kind of ONNX attribute that no operator here takes: a sparse tensor, a type.
struct UnsupportedOnnxAttribute {};

/// Value of an attribute of an ONNX node.
using OnnxAttribute = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, std::vector<std::string>, Tensor,
                                   std::shared_ptr<const OnnxGraph>, UnsupportedOnnxAttribute>;

/// By name, in the order in which they are written.
using OnnxAttributes = std::vector<std::pair<std::string, OnnxAttribute>>;

}  // namespace collage::onnx_io
