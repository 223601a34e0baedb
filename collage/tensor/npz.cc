#include <zip.h>

#include <memory>

#include "collage/support/file.h"
#include "collage/tensor/npy.h"

namespace collage {
namespace {

constexpr std::string_view kExtension = ".npy";

std::string MessageOf(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string message = zip_error_strerror(&error);
  zip_error_fini(&error);
  return message;
}

// Closing for real is explicit; this is the way out on an error, which leaves the file as it was.
struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, Discard>;

Result<Archive> Open(const std::filesystem::path& path, int flags, const char* failure) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), flags, &code));
  if (!archive) return Fail(path.string() + ": " + failure + ": " + MessageOf(code));
  return archive;
}

/// Grows with what is really there: the size that a damaged archive states is not to be trusted.
Result<std::string> ReadEntry(zip_t* archive, zip_uint64_t index) {
  struct Close {
    void operator()(zip_file_t* file) const { zip_fclose(file); }
  };
  const std::unique_ptr<zip_file_t, Close> file(zip_fopen_index(archive, index, 0));
  if (!file) return Fail(zip_strerror(archive));
  std::string content;
  std::vector<char> piece(size_t{1} << 20);
  while (true) {
    const zip_int64_t count = zip_fread(file.get(), piece.data(), piece.size());
    if (count < 0) return Fail(zip_file_strerror(file.get()));
    if (count == 0) return content;
    content.append(piece.data(), static_cast<size_t>(count));
  }
}

Result<Tensor> ReadArray(zip_t* archive, zip_uint64_t index) {
  const std::string content = COLLAGE_TRY(ReadEntry(archive, index));
  return ParseNpy(content);
}

}  // namespace

Result<std::vector<NamedTensor>> ReadNpz(const std::filesystem::path& path) {
  const Archive archive = COLLAGE_TRY(Open(path, ZIP_RDONLY, "is not a readable .npz archive"));
  std::vector<NamedTensor> tensors;
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    const char* entry = zip_get_name(archive.get(), index, 0);
    std::string name = entry ? entry : "";
    Result<Tensor> tensor = ReadArray(archive.get(), index);
    if (!tensor) return Fail(tensor.error().At(path.string() + ": array '" + name + "'"));
    if (name.ends_with(kExtension)) name.resize(name.size() - kExtension.size());
    tensors.emplace_back(std::move(name), std::move(*tensor));
  }
  return tensors;
}

Status WriteNpz(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors) {
  if (tensors.empty()) {
    // libzip removes an archive without entries; this is its end record alone.
    return WriteFileAtomically(path, std::string("PK\5\6") + std::string(18, '\0'));
  }
  const auto failed = [&](const std::string& reason) { return Fail(path.string() + ": cannot be written: " + reason); };
  Archive archive = COLLAGE_TRY(Open(path, ZIP_CREATE | ZIP_TRUNCATE, "cannot be written"));
  std::vector<std::string> contents;  // the archive reads them when it is closed
  contents.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const std::string& content = contents.emplace_back(ToNpy(tensor));
    zip_source_t* source = zip_source_buffer(archive.get(), content.data(), content.size(), /*freep=*/0);
    const zip_int64_t index = zip_file_add(archive.get(), (name + std::string(kExtension)).c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      return failed(zip_strerror(archive.get()));
    }
    // numpy.load maps nothing out of an archive, but stored arrays are read far faster than deflated ones.
    zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
  }
  if (zip_close(archive.get()) != 0) return failed(zip_strerror(archive.get()));
  (void)archive.release();
  return {};
}

}  // namespace collage
