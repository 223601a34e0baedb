#pragma once

#include <filesystem>

#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage::onnx_message {
class TensorProto;
}  // namespace collage::onnx_message

namespace collage::onnx_io {

/// The value of a tensor message: raw bytes, typed fields, or a region of a file in `external_data_directory`. The sizes are
/// checked before anything is allocated.
Result<Tensor> ReadTensorMessage(const onnx_message::TensorProto& message, const std::filesystem::path& external_data_directory);

}  // namespace collage::onnx_io
