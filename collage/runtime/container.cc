#include "collage/runtime/container.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "collage/support/file.h"
#include "collage/support/mappings.h"

namespace collage {

/// Has a name, because a class that others see (ContainerWriter::Output) is made of it.
namespace container_format {

struct TableEntry {
  uint64_t offset;
  uint64_t bytes;
};

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

}  // namespace container_format

namespace {

using container_format::Checksum;
using container_format::TableEntry;

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic =
    "\x89"
    "COLLAGE";
constexpr std::string_view kEndMagic =
    "COLLAGE"
    "\x98";
constexpr uint32_t kVersion = 2;
constexpr size_t kAlignment = 64;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t zeros;
};
static_assert(sizeof(Header) == 16);

struct Footer {
  uint64_t blob_count;
  uint64_t file_bytes;
  uint64_t checksum;
  char magic[8];
};
static_assert(sizeof(Footer) == 32);
constexpr size_t kBehindChecked = sizeof(Footer) - offsetof(Footer, checksum);

uint64_t Align(uint64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

template <class T>
std::string_view BytesOf(const T* values, size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(T)};
}

bool HasMagic(std::string_view content) { return content.starts_with(kMagic); }

/// Of a whole and undamaged container.
Result<Footer> ReadFooter(const std::string& name, std::string_view content) {
  if (content.empty()) return Fail(name + ": is empty, expected a compiled model");
  if (!HasMagic(content)) return Fail(name + ": is not a compiled model (it does not begin like one)");
  const auto truncated = [&] {
    return Fail(name + ": is truncated or damaged: its " + std::to_string(content.size()) + " bytes do not end like a compiled model");
  };
  if (content.size() < sizeof(Header)) return truncated();
  Header header{};
  std::memcpy(&header, content.data(), sizeof header);
  if (header.version != kVersion) {
    return Fail(name + ": has format version " + std::to_string(header.version) + ", this program reads version " +
                std::to_string(kVersion) + "; compile the model again");
  }
  if (content.size() < sizeof(Header) + sizeof(Footer) || !content.ends_with(kEndMagic)) return truncated();
  Footer footer{};
  std::memcpy(&footer, content.data() + content.size() - sizeof footer, sizeof footer);
  Checksum checksum;
  ReadOnce(content.substr(0, content.size() - kBehindChecked), [&](std::string_view piece) { checksum.Add(piece); });
  if (footer.file_bytes != content.size() || checksum.Value() != footer.checksum) {
    return Fail(name + ": is damaged: its content does not fit its checksum");
  }
  return footer;
}

std::string_view ContentOf(const Tensor& tensor) { return {reinterpret_cast<const char*>(tensor.Bytes()), tensor.ByteCount()}; }

}  // namespace

/// The file and what of it has to be known at its end.
class ContainerWriter::Output {
 public:
  explicit Output(AtomicFile file) : file_(std::move(file)) {
    Header header{{}, kVersion, 0};
    std::copy(kMagic.begin(), kMagic.end(), header.magic);
    Append(BytesOf(&header, 1));
  }

  size_t Reserve() {
    table_.push_back({});
    return table_.size() - 1;
  }

  void Fill(size_t index, std::string_view content) {
    Append(std::string(Align(end_) - end_, '\0'));
    table_[index] = {end_, content.size()};
    Append(content);
  }

  Status Commit() {
    Append(BytesOf(table_.data(), table_.size()));
    Footer footer{table_.size(), end_ + sizeof(Footer), 0, {}};
    std::copy(kEndMagic.begin(), kEndMagic.end(), footer.magic);
    checksum_.Add(BytesOf(&footer, 1).substr(0, offsetof(Footer, checksum)));
    footer.checksum = checksum_.Value();
    Append(BytesOf(&footer, 1));
    COLLAGE_TRY_STATUS(status_);
    return file_.Commit();
  }

 private:
  void Append(std::string_view content) {
    checksum_.Add(content);
    end_ += content.size();
    if (status_) status_ = file_.Append(content);
  }

  AtomicFile file_;
  Status status_;  // the first error
  uint64_t end_ = 0;
  Checksum checksum_;
  std::vector<TableEntry> table_;
};

ContainerWriter::ContainerWriter(std::unique_ptr<Output> output) : output_(std::move(output)) {}
ContainerWriter::ContainerWriter(ContainerWriter&& other) noexcept = default;
ContainerWriter::~ContainerWriter() = default;

Result<ContainerWriter> ContainerWriter::Create(const std::filesystem::path& path) {
  return ContainerWriter(std::make_unique<Output>(COLLAGE_TRY(AtomicFile::Create(path))));
}

size_t ContainerWriter::Reserve() { return output_->Reserve(); }

void ContainerWriter::Fill(size_t index, std::string_view content) { output_->Fill(index, content); }

size_t ContainerWriter::Add(std::string_view content) {
  const size_t index = Reserve();
  Fill(index, content);
  return index;
}

size_t ContainerWriter::Add(const Tensor& tensor) {
  const std::string_view content = ContentOf(tensor);
  const uint64_t hash = XXH3_64bits(content.data(), content.size());
  const auto [begin, end] = tensors_.equal_range(hash);
  for (auto known = begin; known != end; ++known) {
    const auto& [index, other] = known->second;
    if (ContentOf(other) == content) return index;
  }
  const size_t index = Add(content);
  GiveBack(content.data(), content.size());
  tensors_.emplace(hash, std::pair(index, tensor));
  return index;
}

Status ContainerWriter::Commit() { return output_->Commit(); }

Result<bool> Container::IsContainer(const std::filesystem::path& path) { return HasMagic(COLLAGE_TRY(MappedFile::Open(path)).content()); }

Result<Container> Container::Open(const std::filesystem::path& path) {
  const MappedFile file = COLLAGE_TRY(MappedFile::Open(path));
  Container container = COLLAGE_TRY(Of(file.content(), file.owner(), path.string()));
  container.mapped_ = file.content();
  container.Forget();  // the checksum has read everything
  return container;
}

Result<Container> Container::Of(std::string_view content, std::shared_ptr<const void> owner, const std::string& name) {
  const Footer footer = COLLAGE_TRY(ReadFooter(name, content));
  const auto damaged = [&] { return Fail(name + ": is damaged: its table of contents is wrong"); };
  const size_t bytes = content.size() - sizeof(Footer);
  if (footer.blob_count > (bytes - sizeof(Header)) / sizeof(TableEntry)) return damaged();
  const size_t table = bytes - footer.blob_count * sizeof(TableEntry);
  Container container;
  container.owner_ = std::move(owner);
  for (size_t i = 0; i < footer.blob_count; ++i) {
    TableEntry entry{};
    std::memcpy(&entry, content.data() + table + i * sizeof entry, sizeof entry);
    if (entry.offset > table || entry.bytes > table - entry.offset || entry.offset % kAlignment != 0) return damaged();
    container.blobs_.push_back(content.substr(entry.offset, entry.bytes));
  }
  return container;
}

}  // namespace collage
