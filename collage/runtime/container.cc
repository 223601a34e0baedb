#include "collage/runtime/container.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "collage/support/file.h"
#include "collage/support/mappings.h"

namespace collage {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic =
    "\x89"
    "COLLAGE";
constexpr uint32_t kVersion = 1;
constexpr size_t kAlignment = 64;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t blob_count;
  uint64_t file_bytes;
  uint64_t checksum;
};
static_assert(sizeof(Header) == 32);
constexpr size_t kChecked = offsetof(Header, checksum);

struct TableEntry {
  uint64_t offset;
  uint64_t bytes;
};

uint64_t Align(uint64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

template <class T>
std::string_view BytesOf(const T* values, size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(T)};
}

class Checksum {
 public:
  Checksum() : state_(XXH3_createState()) { XXH3_64bits_reset(state_.get()); }
  void Add(std::string_view content) { XXH3_64bits_update(state_.get(), content.data(), content.size()); }
  [[nodiscard]] uint64_t Value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

bool HasMagic(std::string_view content) { return content.starts_with(kMagic); }

Status CheckHeader(const std::string& name, std::string_view content, Header& header) {
  if (content.empty()) return Fail(name + ": is empty, expected a compiled model");
  if (!HasMagic(content)) return Fail(name + ": is not a compiled model (it does not begin like one)");
  if (content.size() < sizeof(Header)) return Fail(name + ": is truncated: it ends inside its header");
  std::memcpy(&header, content.data(), sizeof header);
  if (header.version != kVersion) {
    return Fail(name + ": has format version " + std::to_string(header.version) + ", this program reads version " +
                std::to_string(kVersion) + "; compile the model again");
  }
  if (header.file_bytes > content.size()) {
    return Fail(name + ": is truncated: it has " + std::to_string(content.size()) + " bytes, expected " +
                std::to_string(header.file_bytes));
  }
  Checksum checksum;
  checksum.Add(content.substr(0, kChecked));
  ReadOnce(content.substr(sizeof(Header)), [&](std::string_view piece) { checksum.Add(piece); });
  if (header.file_bytes != content.size() || checksum.Value() != header.checksum) {
    return Fail(name + ": is damaged: its content does not fit its checksum");
  }
  return {};
}

}  // namespace

std::string_view ContainerWriter::Blob::Content() const {
  if (!tensor.Defined()) return text;
  return {reinterpret_cast<const char*>(tensor.Bytes()), tensor.ByteCount()};
}

size_t ContainerWriter::Add(std::string content) {
  blobs_.push_back({std::move(content), {}});
  return blobs_.size() - 1;
}

size_t ContainerWriter::Add(const Tensor& tensor) {
  const std::string_view content(reinterpret_cast<const char*>(tensor.Bytes()), tensor.ByteCount());
  const uint64_t hash = XXH3_64bits(content.data(), content.size());
  GiveBack(content.data(), content.size());
  const auto [begin, end] = tensors_.equal_range(hash);
  for (auto known = begin; known != end; ++known) {
    if (blobs_[known->second].Content() == content) return known->second;
  }
  blobs_.push_back({{}, tensor});
  tensors_.emplace(hash, blobs_.size() - 1);
  return blobs_.size() - 1;
}

Status ContainerWriter::Write(const std::filesystem::path& path) const {
  std::vector<TableEntry> table;
  uint64_t end = sizeof(Header) + blobs_.size() * sizeof(TableEntry);
  for (const Blob& blob : blobs_) {
    table.push_back({Align(end), blob.Content().size()});
    end = table.back().offset + table.back().bytes;
  }
  Header header{{}, kVersion, static_cast<uint32_t>(blobs_.size()), end, 0};
  std::copy(kMagic.begin(), kMagic.end(), header.magic);
  const auto for_each_piece = [&](const std::function<Status(std::string_view)>& visit) -> Status {
    COLLAGE_TRY_STATUS(visit(BytesOf(table.data(), table.size())));
    uint64_t at = sizeof(Header) + table.size() * sizeof(TableEntry);
    for (size_t i = 0; i < blobs_.size(); ++i) {
      COLLAGE_TRY_STATUS(visit(std::string(table[i].offset - at, '\0')));
      COLLAGE_TRY_STATUS(visit(blobs_[i].Content()));
      GiveBack(blobs_[i].Content().data(), blobs_[i].Content().size());
      at = table[i].offset + table[i].bytes;
    }
    return {};
  };
  Checksum checksum;
  checksum.Add(BytesOf(&header, 1).substr(0, kChecked));
  COLLAGE_TRY_STATUS(for_each_piece([&](std::string_view piece) {
    checksum.Add(piece);
    return Status();
  }));
  header.checksum = checksum.Value();
  AtomicFile file = COLLAGE_TRY(AtomicFile::Create(path));
  COLLAGE_TRY_STATUS(file.Append(BytesOf(&header, 1)));
  COLLAGE_TRY_STATUS(for_each_piece([&](std::string_view piece) { return file.Append(piece); }));
  return file.Commit();
}

Result<bool> Container::IsContainer(const std::filesystem::path& path) { return HasMagic(COLLAGE_TRY(MappedFile::Open(path)).content()); }

Result<Container> Container::Open(const std::filesystem::path& path) {
  const MappedFile file = COLLAGE_TRY(MappedFile::Open(path));
  Container container = COLLAGE_TRY(Of(file.content(), file.owner(), path.string()));
  container.mapped_ = file.content();
  container.Forget();  // the checksum has read everything
  return container;
}

Result<Container> Container::Of(std::string_view content, std::shared_ptr<const void> owner, const std::string& name) {
  Header header{};
  COLLAGE_TRY_STATUS(CheckHeader(name, content, header));
  const auto damaged = [&] { return Fail(name + ": is damaged: its table of contents is wrong"); };
  const size_t bytes = content.size();
  if (header.blob_count > (bytes - sizeof(Header)) / sizeof(TableEntry)) return damaged();
  Container container;
  container.owner_ = std::move(owner);
  for (size_t i = 0; i < header.blob_count; ++i) {
    TableEntry entry{};
    std::memcpy(&entry, content.data() + sizeof(Header) + i * sizeof entry, sizeof entry);
    if (entry.offset > bytes || entry.bytes > bytes - entry.offset || entry.offset % kAlignment != 0) return damaged();
    container.blobs_.push_back(content.substr(entry.offset, entry.bytes));
  }
  return container;
}

}  // namespace collage
