#include "collage/backend/artifact_bytes.h"

#include <algorithm>
#include <cstring>

#include "collage/tensor/checked_bytes.h"

namespace collage::artifact {

void ArtifactWriter::Text(std::string_view text) {
  Number(text.size());
  bytes_.append(text);
}

void ArtifactWriter::Head(std::string_view magic, std::string_view processor) {
  Text(magic);
  Text(processor);
}

void ArtifactWriter::Type(const TensorType& type) {
  Number(static_cast<uint64_t>(type.dtype));
  Number(type.shape.size());
  for (int64_t extent : type.shape) Number(static_cast<uint64_t>(extent));
}

void ArtifactWriter::Ports(const std::vector<Port>& ports) {
  Number(ports.size());
  for (const Port& port : ports) {
    Type(port.type);
    Text(port.layout.ToString());
  }
}

void ArtifactWriter::Numbers(const std::vector<size_t>& numbers) {
  Number(numbers.size());
  for (const size_t number : numbers) Number(number);
}

void ArtifactWriter::Tensors(const std::vector<Tensor>& tensors) {
  Number(tensors.size());
  for (const Tensor& tensor : tensors) {
    Type(tensor.type());
    Text({reinterpret_cast<const char*>(tensor.Bytes()), tensor.ByteCount()});
  }
}

Result<uint64_t> ArtifactReader::Number() {
  uint64_t value = 0;
  if (bytes_.size() < sizeof value) return Damaged();
  std::memcpy(&value, bytes_.data(), sizeof value);
  bytes_.remove_prefix(sizeof value);
  return value;
}

Result<std::string_view> ArtifactReader::Text() {
  const uint64_t size = COLLAGE_TRY(Number());
  if (size > bytes_.size()) return Damaged();
  const std::string_view text = bytes_.substr(0, size);
  bytes_.remove_prefix(size);
  return text;
}

Status ArtifactReader::Head(std::string_view magic, std::string_view processor) {
  const Result<std::string_view> found = Text();
  if (!found || *found != magic) return Fail(backend_ + ": not a saved kernel of this version");
  if (COLLAGE_TRY(Text()) != processor) return Fail(backend_ + ": the saved kernel was made for another processor; compile it again");
  return {};
}

Result<uint64_t> ArtifactReader::Count() {
  const uint64_t count = COLLAGE_TRY(Number());
  if (count > bytes_.size() / sizeof(uint64_t)) return Damaged();
  return count;
}

Result<TensorType> ArtifactReader::Type() {
  const uint64_t dtype = COLLAGE_TRY(Number());
  if (dtype > static_cast<uint64_t>(kLastDType) || static_cast<DType>(dtype) == DType::kString) return Damaged();
  TensorType type{{}, static_cast<DType>(dtype)};
  uint64_t elements = 1;
  for (uint64_t rank = COLLAGE_TRY(Count()); rank > 0; --rank) {
    const uint64_t extent = COLLAGE_TRY(Number());
    constexpr uint64_t kLargest = uint64_t{1} << 31;
    if (extent > kLargest || elements * std::max<uint64_t>(extent, 1) > kLargest) return Damaged();
    elements *= std::max<uint64_t>(extent, 1);
    type.shape.push_back(static_cast<int64_t>(extent));
  }
  return type;
}

Result<std::vector<Port>> ArtifactReader::Ports() {
  std::vector<Port> ports;
  for (uint64_t left = COLLAGE_TRY(Count()); left > 0; --left) {
    TensorType type = COLLAGE_TRY(Type());
    Layout layout = COLLAGE_TRY(Layout::Parse(std::string(COLLAGE_TRY(Text()))));
    if (!layout.Fits(type)) return Damaged();
    if (!CheckedByteCount(type, layout)) return Damaged();
    ports.push_back({std::move(type), std::move(layout)});
  }
  return ports;
}

Result<std::vector<size_t>> ArtifactReader::Numbers(uint64_t end) {
  std::vector<size_t> numbers;
  for (uint64_t left = COLLAGE_TRY(Count()); left > 0; --left) {
    numbers.push_back(COLLAGE_TRY(Number()));
    if (numbers.back() >= end) return Damaged();
  }
  return numbers;
}

Result<std::vector<Tensor>> ArtifactReader::Tensors() {
  std::vector<Tensor> tensors;
  for (uint64_t left = COLLAGE_TRY(Count()); left > 0; --left) {
    const TensorType type = COLLAGE_TRY(Type());
    const std::string_view content = COLLAGE_TRY(Text());
    if (content.size() != type.ByteCount()) return Damaged();
    Tensor tensor(type);
    std::memcpy(tensor.MutableBytes(), content.data(), content.size());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace collage::artifact
