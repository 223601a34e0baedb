#include "collage/backend/native/artifact.h"

#include <cstring>

namespace collage::native {
namespace {

constexpr std::string_view kMagic = "collage-native-1";

class Writer {
 public:
  void Number(uint64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void Text(std::string_view text) {
    Number(text.size());
    bytes_.append(text);
  }
  void Type(const TensorType& type) {
    Number(static_cast<uint64_t>(type.dtype));
    Number(type.shape.size());
    for (int64_t extent : type.shape) Number(static_cast<uint64_t>(extent));
  }
  void Ports(const std::vector<Port>& ports) {
    Number(ports.size());
    for (const Port& port : ports) {
      Type(port.type);
      Text(port.layout.ToString());
    }
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  Result<uint64_t> Number() {
    uint64_t value = 0;
    if (bytes_.size() < sizeof value) return Damaged();
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  Result<std::string_view> Text() {
    const uint64_t size = COLLAGE_TRY(Number());
    if (size > bytes_.size()) return Damaged();
    const std::string_view text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return text;
  }
  /// A count of things that take at least eight bytes each.
  Result<uint64_t> Count() {
    const uint64_t count = COLLAGE_TRY(Number());
    if (count > bytes_.size() / sizeof(uint64_t)) return Damaged();
    return count;
  }
  Result<TensorType> Type() {
    const uint64_t dtype = COLLAGE_TRY(Number());
    if (dtype > static_cast<uint64_t>(DType::kBool)) return Damaged();
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
  Result<std::vector<Port>> Ports() {
    std::vector<Port> ports;
    for (uint64_t left = COLLAGE_TRY(Count()); left > 0; --left) {
      TensorType type = COLLAGE_TRY(Type());
      Layout layout = COLLAGE_TRY(Layout::Parse(std::string(COLLAGE_TRY(Text()))));
      if (!layout.IsPlain() && layout.Rank() != type.shape.size()) return Damaged();
      ports.push_back({std::move(type), std::move(layout)});
    }
    return ports;
  }
  [[nodiscard]] bool AtEnd() const { return bytes_.empty(); }
  static tl::unexpected<Error> Damaged() { return Fail("native: the saved kernel is damaged"); }

 private:
  std::string_view bytes_;
};

}  // namespace

std::string WriteArtifact(const KernelImage& image, const std::string& processor) {
  Writer writer;
  writer.Text(kMagic);
  writer.Text(processor);
  writer.Ports(image.inputs);
  writer.Ports(image.outputs);
  writer.Number(image.constants.size());
  for (const Tensor& constant : image.constants) {
    writer.Type(constant.type());
    writer.Text({reinterpret_cast<const char*>(constant.Bytes()), constant.ByteCount()});
  }
  writer.Text(image.object);
  return writer.Take();
}

Result<KernelImage> ReadArtifact(std::string_view artifact, const std::string& processor) {
  Reader reader(artifact);
  const Result<std::string_view> magic = reader.Text();
  if (!magic || *magic != kMagic) return Fail("native: not a saved kernel of this version");
  if (COLLAGE_TRY(reader.Text()) != processor) return Fail("native: the saved kernel was made for another processor; compile it again");
  KernelImage image;
  image.inputs = COLLAGE_TRY(reader.Ports());
  image.outputs = COLLAGE_TRY(reader.Ports());
  for (uint64_t left = COLLAGE_TRY(reader.Count()); left > 0; --left) {
    const TensorType type = COLLAGE_TRY(reader.Type());
    const std::string_view content = COLLAGE_TRY(reader.Text());
    if (content.size() != type.ByteCount()) return Reader::Damaged();
    Tensor constant(type);
    std::memcpy(constant.MutableBytes(), content.data(), content.size());
    image.constants.push_back(std::move(constant));
  }
  image.object = std::string(COLLAGE_TRY(reader.Text()));
  if (!reader.AtEnd()) return Reader::Damaged();
  return image;
}

}  // namespace collage::native
