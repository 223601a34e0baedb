#include "collage/runtime/container.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "collage/support/mappings.h"

namespace collage {

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

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic =
    "\x89"
    "COLLAGE";
constexpr std::string_view kEndMagic =
    "COLLAGE"
    "\x98";
constexpr uint32_t kVersion = 2;  // of 1 the table stood in front
constexpr size_t kAlignment = 64;

struct Header {
  char magic[8];
  uint32_t version;
};
static_assert(sizeof(Header) == 12);

struct Footer {
  uint64_t blob_count;
  uint64_t checksum;
  char magic[8];
};
static_assert(sizeof(Footer) == 24);
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
  if (checksum.Value() != footer.checksum) return Fail(name + ": is damaged: its content does not fit its checksum");
  return footer;
}

std::string_view ContentOf(const Tensor& tensor) { return {reinterpret_cast<const char*>(tensor.Bytes()), tensor.ByteCount()}; }

}  // namespace

Result<ContainerWriter> ContainerWriter::Create(const std::filesystem::path& path) {
  return ContainerWriter(COLLAGE_TRY(AtomicFile::Create(path)));
}

ContainerWriter::ContainerWriter(AtomicFile file) : file_(std::move(file)), checksum_(std::make_unique<Checksum>()) {
  Header header{{}, kVersion};
  std::copy(kMagic.begin(), kMagic.end(), header.magic);
  Append(BytesOf(&header, 1));
}

ContainerWriter::ContainerWriter(ContainerWriter&& other) noexcept = default;
ContainerWriter::~ContainerWriter() = default;

void ContainerWriter::Append(std::string_view content) {
  checksum_->Add(content);
  end_ += content.size();
  if (status_) status_ = file_.Append(content);
}

size_t ContainerWriter::Reserve() {
  table_.push_back({});
  return table_.size() - 1;
}

void ContainerWriter::Fill(size_t index, std::string_view content) {
  Append(std::string(Align(end_) - end_, '\0'));
  table_[index] = {end_, content.size()};
  Append(content);
}

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

Status ContainerWriter::Commit() {
  Append(BytesOf(table_.data(), table_.size()));
  Footer footer{table_.size(), 0, {}};
  std::copy(kEndMagic.begin(), kEndMagic.end(), footer.magic);
  checksum_->Add(BytesOf(&footer, 1).substr(0, offsetof(Footer, checksum)));
  footer.checksum = checksum_->Value();
  Append(BytesOf(&footer, 1));
  COLLAGE_TRY_STATUS(status_);
  return file_.Commit();
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
