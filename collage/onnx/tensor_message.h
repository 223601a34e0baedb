#pragma once

#include <optional>

#include "collage/onnx/model_data.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage::onnx_message {
class SparseTensorProto;
class TensorProto;
}  // namespace collage::onnx_message

namespace collage::onnx_io {

/// The value of a tensor message: `raw` bytes that were kept out of it, its own raw bytes, typed fields, or a region of a file. The sizes
/// are checked before anything is allocated. Bytes of mapped files are used where they lie, if they are aligned.
Result<Tensor> ReadTensorMessage(const onnx_message::TensorProto& message, ExternalFiles& files,
                                 const std::optional<TensorBytes>& raw = std::nullopt);

/// The same of a sparse tensor, zeros filled in. Errors on indices that are out of range or of another number than the values.
Result<Tensor> ReadSparseMessage(const onnx_message::SparseTensorProto& message, ExternalFiles& files);

}  // namespace collage::onnx_io
