#include "collage/onnx/model_data.h"

#include <charconv>
#include <cstdint>

#include "onnx_message.pb.h"

namespace collage::onnx_io {
namespace {

// The wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding): a message is a sequence of fields, each a key,
// which is its number and how it is written, and a value.
enum class WireType { kVarint = 0, kEightBytes = 1, kLength = 2, kFourBytes = 5 };

// Numbers of fields in onnx.proto.
constexpr uint64_t kGraphOfModel = 7;
constexpr uint64_t kInitializerOfGraph = 5;
constexpr uint64_t kRawDataOfTensor = 9;

struct Field {
  uint64_t number = 0;
  WireType type = WireType::kVarint;
  std::string_view whole;  // key and value
  std::string_view value;  // of kLength: without its length
};

std::optional<uint64_t> TakeVarint(std::string_view& bytes) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<Field> TakeField(std::string_view& bytes) {
  const std::string_view before = bytes;
  const std::optional<uint64_t> key = TakeVarint(bytes);
  if (!key) return std::nullopt;
  Field field{*key >> 3, static_cast<WireType>(*key & 7), {}, {}};
  uint64_t size = 0;
  if (field.type == WireType::kVarint) {
    if (!TakeVarint(bytes)) return std::nullopt;
  } else if (field.type == WireType::kEightBytes) {
    size = 8;
  } else if (field.type == WireType::kFourBytes) {
    size = 4;
  } else if (field.type == WireType::kLength) {
    const std::optional<uint64_t> length = TakeVarint(bytes);
    if (!length) return std::nullopt;
    size = *length;
  } else {
    return std::nullopt;
  }
  if (size > bytes.size()) return std::nullopt;
  field.value = bytes.substr(0, size);
  bytes.remove_prefix(size);
  field.whole = before.substr(0, before.size() - bytes.size());
  return field;
}

void AppendVarint(uint64_t value, std::string& to) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}

void AppendMessage(uint64_t number, const std::string& message, std::string& to) {
  AppendVarint(number << 3 | static_cast<uint64_t>(WireType::kLength), to);
  AppendVarint(message.size(), to);
  to += message;
}

/// Copies a message, but for what `replace` has dealt with. False when it is malformed.
template <class Replace>
bool CopyMessage(std::string_view from, std::string& to, Replace&& replace) {
  while (!from.empty()) {
    const std::optional<Field> field = TakeField(from);
    if (!field) return false;
    if (field->type == WireType::kLength) {
      const std::optional<bool> is_replaced = replace(*field);
      if (!is_replaced) return false;
      if (*is_replaced) continue;
    }
    to += field->whole;
  }
  return true;
}

struct ExternalRegion {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};

Result<ExternalRegion> ParseExternalRegion(const onnx_message::TensorProto& message) {
  ExternalRegion region;
  for (const auto& entry : message.external_data()) {
    if (entry.key() == "location") region.location = entry.value();
    if (entry.key() != "offset" && entry.key() != "length") continue;
    uint64_t number = 0;
    const char* end = entry.value().data() + entry.value().size();
    const auto [at, error] = std::from_chars(entry.value().data(), end, number);
    if (at != end || error != std::errc())
      return Fail("has the external " + entry.key() + " '" + entry.value() + "', which is no number of bytes");
    if (entry.key() == "offset") region.offset = number;
    if (entry.key() == "length") region.length = number;
  }
  if (region.location.empty()) return Fail("lies in a file of its own that is not named");
  return region;
}

/// Where a location leads out of the folder that it is relative to.
bool LeadsOut(const std::filesystem::path& normal) { return normal.is_absolute() || (!normal.empty() && *normal.begin() == ".."); }

/// Both without links.
bool IsIn(const std::filesystem::path& path, const std::filesystem::path& folder) {
  return !folder.empty() && !LeadsOut(path.lexically_relative(folder));
}

}  // namespace

std::optional<SplitModel> SplitRawData(std::string_view bytes) {
  SplitModel split;
  const auto in_tensor = [&](const Field& field) -> std::optional<bool> {
    if (field.number != kRawDataOfTensor) return false;
    split.raw_data.back() = field.value;
    return true;
  };
  const auto in_graph = [&](const Field& field) -> std::optional<bool> {
    if (field.number != kInitializerOfGraph) return false;
    split.raw_data.emplace_back();
    std::string tensor;
    if (!CopyMessage(field.value, tensor, in_tensor)) return std::nullopt;
    AppendMessage(field.number, tensor, split.message);
    return true;
  };
  // The graph's own length follows from what is left of it, so it is written behind everything else: the order of fields means nothing.
  std::string rest;
  size_t graphs = 0;
  const auto in_model = [&](const Field& field) -> std::optional<bool> {
    if (field.number != kGraphOfModel) return false;
    ++graphs;
    if (!CopyMessage(field.value, split.message, in_graph)) return std::nullopt;
    return true;
  };
  if (!CopyMessage(bytes, rest, in_model) || graphs != 1) return std::nullopt;
  AppendMessage(kGraphOfModel, split.message, rest);
  split.message = std::move(rest);
  return split;
}

Result<const MappedFile*> ExternalFiles::Open(const std::string& location) {
  if (const auto known = files_.find(location); known != files_.end()) return &known->second;
  const std::filesystem::path relative = std::filesystem::path(location).lexically_normal();
  const auto outside = [&] { return Fail("lies in '" + location + "', which is outside the folder of the model"); };
  if (LeadsOut(relative)) return outside();
  if (directory_.empty()) return Fail("lies in the file '" + location + "' beside the model: give the model as a file");
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(directory_ / relative, error);
  if (error) return Fail("lies in " + (directory_ / relative).string() + ", which cannot be read: " + error.message());
  // A link may lead out as well, but not out of where the model itself lies: caches lay models out as links.
  if (!IsIn(path, std::filesystem::canonical(directory_, error)) && !IsIn(path, folder_of_model_)) return outside();
  Result<MappedFile> file = MappedFile::Open(path);
  if (!file) return Fail("lies in a file that cannot be read: " + file.error().message);
  return &files_.emplace(location, std::move(*file)).first->second;
}

Result<TensorBytes> ExternalFiles::Find(const onnx_message::TensorProto& message, size_t bytes) {
  const ExternalRegion region = COLLAGE_TRY(ParseExternalRegion(message));
  if (region.length && *region.length != bytes)
    return Fail("has " + std::to_string(*region.length) + " external bytes where " + std::to_string(bytes) + " are right");
  const MappedFile* file = COLLAGE_TRY(Open(region.location));
  const std::string_view content = file->content();
  if (region.offset > content.size() || content.size() - region.offset < bytes) {
    return Fail("lies at " + std::to_string(region.offset) + " in " + (directory_ / region.location).string() + ", which has only " +
                std::to_string(content.size()) + " bytes");
  }
  return TensorBytes{content.substr(region.offset, bytes), file->owner()};
}

}  // namespace collage::onnx_io
