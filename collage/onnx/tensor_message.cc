#include "collage/onnx/tensor_message.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "collage/onnx/data_type.h"
#include "collage/onnx/fold.h"
#include "collage/support/mappings.h"
#include "collage/support/memory.h"
#include "collage/tensor/narrow.h"
#include "collage/tensor/strings.h"
#include "onnx_message.pb.h"

namespace collage::onnx_io {
namespace {

using onnx_message::TensorProto;

constexpr std::array<std::pair<TensorProto::DataType, DType>, 24> kDataTypes = {{
    {TensorProto::FLOAT, DType::kFloat32},
    {TensorProto::DOUBLE, DType::kFloat64},
    {TensorProto::FLOAT16, DType::kFloat16},
    {TensorProto::BFLOAT16, DType::kBFloat16},
    {TensorProto::INT8, DType::kInt8},
    {TensorProto::INT16, DType::kInt16},
    {TensorProto::INT32, DType::kInt32},
    {TensorProto::INT64, DType::kInt64},
    {TensorProto::UINT8, DType::kUInt8},
    {TensorProto::UINT16, DType::kUInt16},
    {TensorProto::UINT32, DType::kUInt32},
    {TensorProto::UINT64, DType::kUInt64},
    {TensorProto::BOOL, DType::kBool},
    {TensorProto::FLOAT8E4M3FN, DType::kFloat8E4M3FN},
    {TensorProto::FLOAT8E4M3FNUZ, DType::kFloat8E4M3FNUZ},
    {TensorProto::FLOAT8E5M2, DType::kFloat8E5M2},
    {TensorProto::FLOAT8E5M2FNUZ, DType::kFloat8E5M2FNUZ},
    {TensorProto::FLOAT8E8M0, DType::kFloat8E8M0},
    {TensorProto::FLOAT4E2M1, DType::kFloat4E2M1},
    {TensorProto::INT4, DType::kInt4},
    {TensorProto::UINT4, DType::kUInt4},
    {TensorProto::INT2, DType::kInt2},
    {TensorProto::UINT2, DType::kUInt2},
    {TensorProto::STRING, DType::kString},
}};

/// Bytes of the elements as ONNX stores them: several of less than 8 bits in one byte, the first in its low bits.
size_t PackedByteCount(const TensorType& type) { return (static_cast<size_t>(type.ElementCount()) * BitWidth(type.dtype) + 7) / 8; }

Error WrongSize(const std::string& found, const TensorType& type) {
  return Error{"has " + found + " where " + ToString(type) + " needs " + std::to_string(type.ElementCount()) + " elements, " +
               std::to_string(PackedByteCount(type)) + " bytes"};
}

template <class To, class Field>
Result<Tensor> FromField(const Field& field, const TensorType& type) {
  if (field.size() != type.ElementCount()) return Fail(WrongSize(std::to_string(field.size()) + " elements", type));
  Tensor tensor(type);
  To* data = reinterpret_cast<To*>(tensor.MutableBytes());
  for (int i = 0; i < field.size(); ++i) data[i] = static_cast<To>(field.Get(i));
  return tensor;
}

/// Elements of less than 8 bits from the bytes that hold several of them.
Tensor Unpacked(const TensorType& type, const std::byte* packed) {
  const size_t bits = BitWidth(type.dtype);
  const size_t in_byte = 8 / bits;
  const auto count = static_cast<size_t>(type.ElementCount());
  Tensor bytes(TensorType{type.shape, type.dtype});
  for (size_t i = 0; i < count; ++i) {
    const auto shifted = std::to_integer<unsigned>(packed[i / in_byte]) >> (i % in_byte * bits);
    bytes.MutableBytes()[i] = static_cast<std::byte>(shifted & ((1U << bits) - 1));
  }
  if (IsFloatingPoint(type.dtype)) return bytes;
  Tensor result(type);  // with signs extended
  Narrow(Widened(bytes), result);
  return result;
}

/// int32_data holds the packed bytes.
Result<Tensor> FromPackedField(const TensorProto& message, const TensorType& type) {
  if (static_cast<size_t>(message.int32_data_size()) != PackedByteCount(type)) {
    return Fail(WrongSize(std::to_string(message.int32_data_size()) + " bytes", type));
  }
  std::vector<std::byte> packed;
  for (const int32_t byte : message.int32_data()) packed.push_back(static_cast<std::byte>(byte));
  return Unpacked(type, packed.data());
}

/// The typed fields, as onnx.proto assigns them to data types; narrow floats travel as their bits in int32_data.
Result<Tensor> FromTypedField(const TensorProto& message, const TensorType& type) {
  switch (type.dtype) {
    case DType::kFloat32:
      return FromField<float>(message.float_data(), type);
    case DType::kFloat64:
      return FromField<double>(message.double_data(), type);
    case DType::kInt64:
      return FromField<int64_t>(message.int64_data(), type);
    case DType::kUInt32:
      return FromField<uint32_t>(message.uint64_data(), type);
    case DType::kUInt64:
      return FromField<uint64_t>(message.uint64_data(), type);
    case DType::kInt32:
      return FromField<int32_t>(message.int32_data(), type);
    case DType::kInt16:
    case DType::kUInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      return FromField<uint16_t>(message.int32_data(), type);
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat8E8M0:
      return FromField<uint8_t>(message.int32_data(), type);
    case DType::kBool:
      return FromField<bool>(message.int32_data(), type);
    case DType::kFloat4E2M1:
    case DType::kInt4:
    case DType::kUInt4:
    case DType::kInt2:
    case DType::kUInt2:
      return FromPackedField(message, type);
    case DType::kString:
      if (message.string_data_size() != type.ElementCount())
        return Fail(WrongSize(std::to_string(message.string_data_size()) + " elements", type));
      return StringTensor(type.shape, {message.string_data().begin(), message.string_data().end()});
  }
  return Fail("has an unknown element type");
}

/// C++ gives bytes other than 0 and 1 no meaning as bool.
void NormalizeBooleans(Tensor& tensor) {
  if (tensor.dtype() != DType::kBool) return;
  std::byte* bytes = tensor.MutableBytes();
  for (size_t i = 0; i < tensor.ByteCount(); ++i) bytes[i] = std::byte{bytes[i] != std::byte{0}};
}

/// Where they lie, if they can be used there.
Result<Tensor> FromRawData(const TensorBytes& raw, const TensorType& type) {
  if (type.dtype == DType::kString) return Fail("has raw data, which strings cannot have");
  if (raw.bytes.size() != PackedByteCount(type)) return Fail(WrongSize(std::to_string(raw.bytes.size()) + " bytes", type));
  if (BitWidth(type.dtype) < 8) return Unpacked(type, reinterpret_cast<const std::byte*>(raw.bytes.data()));
  // What kernels do not pack they read in place.
  if (raw.owner && IsAligned(raw.bytes.data()) && !raw.bytes.empty() && type.dtype != DType::kBool)
    return Tensor::View(type, raw.bytes.data(), raw.owner);
  Tensor tensor(type);
  // So a large tensor is not in memory twice.
  std::byte* target = raw.bytes.empty() ? nullptr : tensor.MutableBytes();
  ReadOnce(raw.bytes, [&](std::string_view piece) {
    std::memcpy(target, piece.data(), piece.size());
    target += piece.size();
  });
  NormalizeBooleans(tensor);
  return tensor;
}

}  // namespace

std::optional<DType> DTypeOfOnnx(int64_t data_type) {
  for (const auto& [number, dtype] : kDataTypes) {
    if (number == data_type) return dtype;
  }
  return std::nullopt;
}

int64_t OnnxDataType(DType dtype) {
  for (const auto& [number, candidate] : kDataTypes) {
    if (candidate == dtype) return number;
  }
  return TensorProto::UNDEFINED;
}

Result<Tensor> ReadTensorMessage(const TensorProto& message, ExternalFiles& files, const std::optional<TensorBytes>& raw) {
  const std::optional<DType> dtype = DTypeOfOnnx(message.data_type());
  if (!dtype) return Fail("has element type " + std::to_string(message.data_type()) + " of TensorProto, which is not supported");
  if (message.has_segment()) return Fail("is stored in segments, which is not supported");
  const TensorType type{Shape(message.dims().begin(), message.dims().end()), *dtype};
  COLLAGE_TRY_STATUS(CheckExtents(type.shape));
  if (message.data_location() == TensorProto::EXTERNAL) return FromRawData(COLLAGE_TRY(files.Find(message, PackedByteCount(type))), type);
  if (raw) return FromRawData(*raw, type);
  return message.has_raw_data() ? FromRawData({message.raw_data(), nullptr}, type) : FromTypedField(message, type);
}

Result<Tensor> ReadSparseMessage(const onnx_message::SparseTensorProto& message, ExternalFiles& files) {
  const TensorType type{Shape(message.dims().begin(), message.dims().end()), DType::kFloat32};
  COLLAGE_TRY_STATUS(CheckExtents(type.shape));
  const Tensor values = COLLAGE_TRY(ReadTensorMessage(message.values(), files));
  const Tensor indices = COLLAGE_TRY(ReadTensorMessage(message.indices(), files));
  const auto rank = static_cast<int64_t>(type.shape.size());
  const int64_t count = values.ElementCount();
  const bool is_flat = indices.shape() == Shape{count};
  if (values.shape().size() != 1 || indices.dtype() != DType::kInt64 || (!is_flat && indices.shape() != Shape{count, rank})) {
    return Fail("is sparse with values " + ToString(values.type()) + " and indices " + ToString(indices.type()) +
                "; expected n values and n int64 indices, or n rows of " + std::to_string(rank));
  }
  Tensor tensor(TensorType{type.shape, values.dtype()});
  const std::vector<int64_t> strides = is_flat ? std::vector<int64_t>{1} : RowMajorStrides(type.shape);
  const Shape extents = is_flat ? Shape{tensor.ElementCount()} : type.shape;
  const size_t bytes = ByteSize(values.dtype());
  const int64_t* index = indices.Data<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0;
    for (size_t axis = 0; axis < extents.size(); ++axis, ++index) {
      if (*index < 0 || *index >= extents[axis])
        return Fail("is sparse with the index " + std::to_string(*index) + " where " + std::to_string(extents[axis]) + " is the extent");
      at += *index * strides[axis];
    }
    std::memcpy(tensor.MutableBytes() + static_cast<size_t>(at) * bytes, values.Bytes() + static_cast<size_t>(i) * bytes, bytes);
  }
  return tensor;
}

}  // namespace collage::onnx_io
